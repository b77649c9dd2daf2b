// How a transport's idle sleeps: to the microsecond, for who waits for several has little patience with each.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <span>

#include "src/base/clock.h"

namespace tutti::internal {

// Until one is readable, or `deadline`, or `most_us` are over. A signal ends it too.
inline void sleep_until_readable(std::span<pollfd> descriptors, Deadline deadline, int64_t most_us) {
  const int64_t us = std::min(deadline.remaining_us(), most_us);
  const timespec timeout{.tv_sec = us / 1'000'000, .tv_nsec = us % 1'000'000 * 1000};
  ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
}

}  // namespace tutti::internal
