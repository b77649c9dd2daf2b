#include "src/core/store/store_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "src/core/store/handshake.h"
#include "src/core/store/host_port.h"

namespace tutti::internal {
namespace {

constexpr std::string_view kTitle = "tutti store 1";
constexpr size_t kMaxFileBytes = 16 << 10;
constexpr size_t kMaxAddresses = 64;
constexpr size_t kSecretCharacters = 64;

std::string reason(int error) { return std::generic_category().message(error); }

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string read_all(int fd) {
  std::string text(kMaxFileBytes, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(fd, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

// What makes the file no word of this user's; "" where nothing does.
std::string distrust(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return "it is no plain file";
  if (file.st_uid != geteuid()) return fmt::format("it belongs to user {}, not to {}", file.st_uid, geteuid());
  if (file.st_mode & (S_IRWXG | S_IRWXO))
    return fmt::format("others than its owner have rights on it (mode {:o}, allowed 600)", file.st_mode & 07777u);
  return {};
}

// Why what lies at the path must stay; "" where there is nothing, or the store file of an earlier job.
std::string why_not_replace(const std::string& path) {
  struct stat old {};
  if (lstat(path.c_str(), &old) != 0) return {};
  if (old.st_uid != geteuid()) return fmt::format("it belongs to user {}, not to {}", old.st_uid, geteuid());
  if (!S_ISREG(old.st_mode)) return "something lies there that is no plain file";
  if (old.st_size == 0) return {};  // as mktemp makes them
  const Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file && !read_all(file.fd()).starts_with(kTitle)) return "a file lies there that is not a store file";
  return {};
}

bool take_line(std::string_view& text, std::string_view& line) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace

std::string store_file_text(const std::vector<Address>& addresses, const std::string& secret) {
  std::string text = fmt::format("{}\n{}\n", kTitle, secret);
  for (const Address& address : addresses) text += address.text() + "\n";
  return text + "end\n";
}

StoreFile parse_store_file(std::string_view text) {
  StoreFile file, none;
  none.unknown_because = "its text is not that of a store file";
  std::string_view line;
  if (text.size() > kMaxFileBytes || !take_line(text, line) || line != kTitle) return none;
  if (!take_line(text, line) || line.size() != kSecretCharacters) return none;
  file.secret = line;
  while (take_line(text, line) && file.addresses.size() < kMaxAddresses) {
    if (line == "end") return file.addresses.empty() || !text.empty() ? none : file;
    auto place = parse_host_port(line);
    if (!place) return none;
    const Address address = numeric_address(place->host, place->port);
    if (address.length == 0) return none;
    file.addresses.push_back(address);
  }
  return none;
}

Result<FileId> write_store_file(const std::string& path, const std::vector<Address>& addresses,
                                const std::string& secret) {
  if (const std::string why = why_not_replace(path); !why.empty())
    return Status(Code::invalid_argument, fmt::format("store file {}: {}", path, why));
  const std::string draft = fmt::format("{}.{}.{}", path, getpid(), fresh_secret().substr(0, 8));
  const Socket file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Status::system(Code::invalid_argument, "store file: creating " + draft, errno);
  struct stat made {};
  const std::string text = store_file_text(addresses, secret);
  const bool written = fchmod(file.fd(), 0600) == 0 && write_all(file.fd(), text) && fstat(file.fd(), &made) == 0;
  if (written && rename(draft.c_str(), path.c_str()) == 0) return FileId{made.st_dev, made.st_ino};
  const Status failed = Status::system(
      Code::invalid_argument, fmt::format("store file: {} {}", written ? "renaming to" : "writing", path), errno);
  unlink(draft.c_str());
  return failed;
}

StoreFile read_store_file(const std::string& path) {
  StoreFile none;
  const Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    none.unknown_because = fmt::format("store file {}: {}", path, reason(errno));
    return none;
  }
  struct stat facts {};
  if (fstat(file.fd(), &facts) != 0) {
    none.unknown_because = fmt::format("store file {}: {}", path, reason(errno));
    return none;
  }
  if (const std::string why = distrust(facts); !why.empty()) {
    none.status = Status(Code::invalid_argument, fmt::format("store file {}: {}", path, why));
    return none;
  }
  StoreFile found = parse_store_file(read_all(file.fd()));
  if (!found.unknown_because.empty())
    found.unknown_because = fmt::format("store file {}: {}", path, found.unknown_because);
  return found;
}

void remove_store_file(const std::string& path, FileId id) {
  struct stat now {};
  if (lstat(path.c_str(), &now) == 0 && now.st_dev == id.device && now.st_ino == id.inode) unlink(path.c_str());
}

}  // namespace tutti::internal
