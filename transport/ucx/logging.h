// What UCX says while it works for tutti goes to tutti's log; what it says to others in the process stays with them.
// Any thread.
#pragma once

#include <ucs/debug/log_def.h>

namespace tutti::internal::ucx {

// While one lives, this thread calls UCX for tutti.
class LogScope {
 public:
  LogScope() { ++depth; }
  ~LogScope() { --depth; }
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;
  static bool is_open() { return depth > 0; }

 private:
  inline static thread_local int depth = 0;
};

// While one lives, what UCX says is for whoever debugs only: what is tried may fail.
class QuietScope {
 public:
  QuietScope() { ++depth; }
  ~QuietScope() { --depth; }
  QuietScope(const QuietScope&) = delete;
  QuietScope& operator=(const QuietScope&) = delete;
  static bool is_open() { return depth > 0; }

 private:
  inline static thread_local int depth = 0;
};

// For ucs_log_push_handler.
ucs_log_func_rc_t log_handler(const char* file, unsigned line, const char* function, ucs_log_level_t level,
                              const ucs_log_component_config_t* component, const char* format, va_list arguments);

}  // namespace tutti::internal::ucx
