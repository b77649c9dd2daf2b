#include "src/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace tutti::internal {
namespace {

thread_local int log_rank = -1;

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: return spdlog::level::off;
  }
  return spdlog::level::off;
}

// Never destroyed, and not in spdlog's registry: a program may have its own spdlog, and may log while it exits.
spdlog::logger& logger() {
  static auto& logger = [&]() -> spdlog::logger& {
    auto& made = *new spdlog::logger("tutti", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%v");
    made.set_level(spdlog::level::warn);
    return made;
  }();
  return logger;
}

}  // namespace

void set_log_level(std::string_view level) {
  logger().set_level(level == "error" ? spdlog::level::err : spdlog::level::from_str(std::string(level)));
}
void set_log_rank(int rank) { log_rank = rank; }

bool is_logged(LogLevel level) { return logger().should_log(level_of(level)); }

void log_line(LogLevel level, const std::string& line) {
  static constexpr const char* kNames[] = {"debug", "info", "warn", "error", "off"};
  const std::string who = log_rank < 0 ? "" : fmt::format(" {}", log_rank);
  logger().log(level_of(level), "[tutti{}] {}: {}", who, kNames[static_cast<int>(level)], line);
}

}  // namespace tutti::internal
