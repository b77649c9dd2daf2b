#include "src/info/gids.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "src/base/first_line.h"

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;

// Eight groups of four digits, always. Nothing where the text is none.
std::optional<GidBytes> parse_gid(const std::string& text) {
  constexpr size_t kDigits = 39;
  GidBytes gid{};
  if (text.size() != kDigits) return std::nullopt;
  for (size_t i = 0; i < gid.size(); ++i) {
    const char* digits = text.data() + 2 * i + i / 2;
    if (std::from_chars(digits, digits + 2, gid[i], 16).ptr != digits + 2) return std::nullopt;
  }
  return gid;
}

}  // namespace

GidClass class_of(const Gid& gid) { return class_of(parse_gid(gid.text).value_or(GidBytes{}), gid.type == "RoCE v2"); }

const char* to_string(GidClass gid_class) {
  switch (gid_class) {
    case GidClass::global_v2: return "global, RoCE v2";
    case GidClass::global_v1: return "global, RoCE v1 or InfiniBand";
    case GidClass::link_local_v2: return "link-local, RoCE v2";
    case GidClass::link_local_v1: break;
  }
  return "link-local, RoCE v1 or InfiniBand";
}

std::vector<Gid> read_gids(const std::string& rdma, int port, const std::string& sysfs_root) {
  const fs::path folder = fs::path(sysfs_root) / "class/infiniband" / rdma / "ports" / std::to_string(port);
  std::vector<Gid> gids;
  std::error_code error;
  for (fs::directory_iterator entry(folder / "gids", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    Gid gid;
    if (std::from_chars(name.data(), name.data() + name.size(), gid.index).ec != std::errc()) continue;
    gid.text = first_line(entry->path());
    const auto bytes = parse_gid(gid.text);
    if (!bytes || is_nowhere(*bytes)) continue;
    gid.type = first_line(folder / "gid_attrs/types" / name);
    gid.net = first_line(folder / "gid_attrs/ndevs" / name);
    gids.push_back(gid);
  }
  std::ranges::sort(gids, {}, &Gid::index);
  return gids;
}

int choose_gid(const std::vector<Gid>& gids) {
  const auto class_of_one = [](const Gid& gid) { return class_of(gid); };
  const auto best = std::ranges::max_element(gids, {}, class_of_one);  // the first of equals
  return best == gids.end() ? -1 : static_cast<int>(best - gids.begin());
}

}  // namespace tutti::internal
