#include "src/info/whole_file.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;

// 0 or errno.
int write_into(const fs::path& path, const std::string& content) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  return file ? 0 : errno != 0 ? errno : EIO;
}

}  // namespace

Status write_whole_file(const std::string& path, const std::string& content) {
  const auto failed = [&](int error) {
    return Status::system(Code::invalid_argument, fmt::format("cannot write {}", path), error);
  };
  std::error_code error;
  const fs::file_status found = fs::status(path, error);
  if (fs::exists(found) && !fs::is_regular_file(found)) {
    const int into = write_into(path, content);
    return into == 0 ? Status() : failed(into);
  }
  // Where a link leads to, the link stays.
  const fs::path target = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : fs::path(path);
  const fs::path beside = target.string() + fmt::format(".{}.part", getpid());
  int failure = write_into(beside, content);
  if (failure == 0) {
    fs::rename(beside, target, error);
    failure = error.value();
  }
  if (failure == 0) return Status();
  fs::remove(beside, error);
  return failed(failure);
}

}  // namespace tutti::internal
