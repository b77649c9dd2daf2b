// The library's one clock: monotonic, so that a step of the wall clock changes no timeout.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace tutti::internal {

using Clock = std::chrono::steady_clock;

inline int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch()).count();
}

// A point in time after which waiting is over. Saturates: a very long timeout means never.
class Deadline {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  static Deadline never() { return Deadline(kNever); }
  static Deadline after_us(int64_t timeout_us) {
    const int64_t now = now_us();
    return Deadline(timeout_us >= kNever - now ? kNever : now + timeout_us);
  }

  bool is_never() const { return at_us_ == kNever; }
  bool passed() const { return !is_never() && now_us() >= at_us_; }
  // Microseconds left, 0 when passed, kNever for never.
  int64_t remaining_us() const {
    if (is_never()) return kNever;
    const int64_t left = at_us_ - now_us();
    return left > 0 ? left : 0;
  }
  // For poll(2): milliseconds rounded up, at most `cap`.
  int poll_ms(int cap) const {
    const int64_t us = remaining_us();
    return us / 1000 >= cap ? cap : static_cast<int>((us + 999) / 1000);
  }
  int64_t at_us() const { return at_us_; }
  auto operator<=>(const Deadline&) const = default;

 private:
  explicit Deadline(int64_t at_us) : at_us_(at_us) {}
  int64_t at_us_;
};

}  // namespace tutti::internal
