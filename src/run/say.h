// What tutti-run itself has to say, on standard error. Whole lines, by one system call: others write there too.
#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <string>

namespace tutti::internal {

inline std::string launcher_line(const std::string& message) { return fmt::format("tutti-run: {}\n", message); }

// The end of a message about one rank, where others run.
inline const char* others_end(bool are_there) { return are_there ? ": ending the others" : ""; }

inline void print_error(const std::string& line) {
  // Where standard error takes nothing there is nobody to tell.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace tutti::internal
