#include "src/info/gids.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::string text;
  std::ifstream stream(file);
  std::getline(stream, text);
  return text;
}

bool is_zero(const std::string& gid) {
  return std::ranges::all_of(gid, [](char letter) { return letter == '0' || letter == ':'; });
}

}  // namespace

GidClass class_of(const Gid& gid) {
  const bool link_local = gid.text.starts_with("fe80:");
  if (gid.type == "RoCE v2") return link_local ? GidClass::link_local_v2 : GidClass::global_v2;
  return link_local ? GidClass::link_local_v1 : GidClass::global_v1;
}

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
    if (gid.text.empty() || is_zero(gid.text)) continue;
    gid.type = first_line(folder / "gid_attrs/types" / name);
    gid.net = first_line(folder / "gid_attrs/ndevs" / name);
    gids.push_back(gid);
  }
  std::ranges::sort(gids, {}, &Gid::index);
  return gids;
}

int choose_gid(const std::vector<Gid>& gids) {
  const auto best = std::ranges::max_element(gids, {}, class_of);  // the first of equals
  return best == gids.end() ? -1 : static_cast<int>(best - gids.begin());
}

}  // namespace tutti::internal
