// What tutti-run itself has to say, on standard error. Whole lines, by one system call: others write there too.
#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <string>

namespace tutti::internal {

inline std::string launcher_line(const std::string& message) { return fmt::format("tutti-run: {}\n", message); }

inline void print_error(const std::string& line) {
  // Where standard error takes nothing there is nobody to tell.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace tutti::internal
