// The log: lines on standard error, "[tutti 3] warn: ...". Never standard output, and never on the fast path.
// Ranks that are threads of one process share the logger; each thread says with set_log_rank which rank it speaks for.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace tutti::internal {

enum class LogLevel : int { debug, info, warn, error, off };

// "debug", "info", "warn", "error" or "off" for the whole process.
void set_log_level(std::string_view level);
// The rank that this thread speaks for; -1: none yet.
void set_log_rank(int rank);

bool is_logged(LogLevel level);
void log_line(LogLevel level, const std::string& line);

template <class... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (is_logged(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::debug, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::warn, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::error, format, std::forward<Args>(args)...);
}

}  // namespace tutti::internal
