#include "transport/ucx/logging.h"

#include <array>
#include <cstdio>

#include "src/base/log.h"

namespace tutti::internal::ucx {
namespace {

constexpr size_t kLongestLine = 1024;

// What UCX calls a diagnosis is no news to users: a peer that closes its connection, a device that is passed over.
LogLevel level_of(ucs_log_level_t level) {
  if (QuietScope::is_open()) return LogLevel::debug;
  if (level <= UCS_LOG_LEVEL_ERROR) return LogLevel::error;
  if (level == UCS_LOG_LEVEL_WARN) return LogLevel::warn;
  if (level <= UCS_LOG_LEVEL_INFO || level == UCS_LOG_LEVEL_PRINT) return LogLevel::info;
  return LogLevel::debug;
}

}  // namespace

ucs_log_func_rc_t log_handler(const char*, unsigned, const char*, ucs_log_level_t level,
                              const ucs_log_component_config_t*, const char* format, va_list arguments) {
  if (!LogScope::is_open()) return UCS_LOG_FUNC_RC_CONTINUE;
  if (!is_logged(level_of(level))) return UCS_LOG_FUNC_RC_STOP;
  std::array<char, kLongestLine> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  log_at(level_of(level), "UCX: {}", line.data());
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace tutti::internal::ucx
