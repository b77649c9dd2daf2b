// The kernel's one-line files, of sysfs and the like.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace tutti::internal {

// The file's first line; "" where there is none, or where it cannot be read.
inline std::string first_line(const std::filesystem::path& file) {
  std::string text;
  std::ifstream stream(file);
  std::getline(stream, text);
  return text;
}

}  // namespace tutti::internal
