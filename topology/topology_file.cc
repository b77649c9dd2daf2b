#include "topology/topology_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <hwloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "src/base/unique_fd.h"

namespace tutti::internal {
namespace {

constexpr int kNewestXml = HWLOC_API_VERSION >> 16;

// Opening a pipe that nobody writes to would wait; opening a terminal could make it ours.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Why these are refused; "" where they are not.
std::string why_not_read(const struct stat& file) {
  if (S_ISDIR(file.st_mode)) return "it is a folder";
  if (!S_ISREG(file.st_mode))
    return "it is a pipe, a socket or a device: it must be a regular file, for each rank reads it from its beginning";
  if (file.st_size == 0) return "it is empty";
  if (static_cast<size_t>(file.st_size) > kMostTopologyBytes)
    return fmt::format("it has {} bytes: at most {} are read", file.st_size, kMostTopologyBytes);
  return "";
}

// As many bytes as are there, of those that are wanted. 0 or errno.
int read_bytes(int fd, std::string& text, size_t wanted) {
  text.resize(wanted);
  size_t done = 0;
  while (done < wanted) {
    const ssize_t got = read(fd, text.data() + done, wanted - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return 0;
}

constexpr std::string_view kBlanks = " \t\r\n";
bool is_blank(char letter) { return kBlanks.find(letter) != std::string_view::npos; }

// The start tag of the document's first element, without its angle brackets: what comes before it, a comment above all,
// may look like one.
std::string_view root_element(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    const bool is_comment = text.starts_with("<!--");
    const bool is_before_root = is_comment || text.starts_with("<?") || text.starts_with("<!");
    const std::string_view closing = is_comment ? "-->" : ">";
    const size_t end = text.find(closing);
    if (end == std::string_view::npos || !text.starts_with('<')) return {};
    if (!is_before_root) return text.substr(1, end - 1);
    text.remove_prefix(end + closing.size());
  }
}

bool is_topology(std::string_view element) {
  constexpr std::string_view kName = "topology";
  return element.starts_with(kName) && (element.size() == kName.size() || is_blank(element[kName.size()]));
}

// The attribute's value; version 1 of the format did not have one.
std::string_view version_of(std::string_view element) {
  for (size_t at = 0; (at = element.find("version=", at + 1)) != std::string_view::npos;) {
    const std::string_view value = element.substr(at + std::string_view("version=").size());
    if (!is_blank(element[at - 1]) || value.empty()) continue;
    const size_t end = value.find(value.front(), 1);
    if (end != std::string_view::npos) return value.substr(1, end - 1);
  }
  return "1.0";
}

// Why hwloc would not take this text, as far as that shows at a glance; "" where it may.
std::string why_not_loaded(std::string_view text) {
  const std::string_view element = root_element(text);
  if (!is_topology(element)) return "it is no topology as hwloc writes it (no <topology> element at its root)";
  const std::string_view version = version_of(element);
  int major = 0;
  const auto read = std::from_chars(version.data(), version.data() + version.size(), major);
  // A number that no int holds is a newer one too.
  if (read.ec == std::errc::invalid_argument || major < 0)
    return fmt::format("its version is '{}': hwloc {} reads up to version {}", version.substr(0, 20), HWLOC_VERSION,
                       kNewestXml);
  if (read.ec == std::errc::result_out_of_range || major > kNewestXml)
    return fmt::format(
        "it is of XML version {}, and hwloc {} reads up to version {}: write it with an lstopo of hwloc {}",
        version.substr(0, 20), HWLOC_VERSION, kNewestXml, kNewestXml);
  if (text.find("</topology>") == std::string_view::npos) return "it is cut short (no </topology> at its end)";
  return "";
}

}  // namespace

Result<std::string> read_topology_file(const std::string& path) {
  const auto name = [&] { return fmt::format("topology file {}", path); };
  const auto refusal = [&](const std::string& why) {
    return Status(Code::invalid_argument, fmt::format("{}: {}", name(), why));
  };
  const UniqueFd fd(open(path.c_str(), kOpenFlags));
  if (!fd) return Status::system(Code::invalid_argument, name(), errno);
  struct stat file {};
  if (fstat(fd.get(), &file) != 0) return Status::system(Code::invalid_argument, name(), errno);
  if (const std::string why = why_not_read(file); !why.empty()) return refusal(why);
  std::string text;
  if (const int error = read_bytes(fd.get(), text, static_cast<size_t>(file.st_size)); error != 0)
    return Status::system(Code::invalid_argument, name(), error);
  if (const std::string why = why_not_loaded(text); !why.empty()) return refusal(why);
  return text;
}

}  // namespace tutti::internal
