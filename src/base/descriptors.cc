#include "src/base/descriptors.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

namespace tutti::internal {

uint64_t open_descriptors() {
  std::error_code error;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error))
    ++count;
  return count;
}

std::string descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return "RLIMIT_NOFILE is unknown";
  return fmt::format("RLIMIT_NOFILE is {}, hard limit {}", limit.rlim_cur, limit.rlim_max);
}

std::string descriptor_advice(uint64_t needed) {
  return fmt::format("{}: raise it, as with ulimit -n {}", descriptor_limit(), needed);
}

uint64_t raise_descriptor_limit(uint64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<uint64_t>::max();
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::max<rlim_t>(before, std::min<rlim_t>(wanted, limit.rlim_max));
  return limit.rlim_cur == before || setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

}  // namespace tutti::internal
