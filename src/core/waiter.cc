#include "src/core/waiter.h"

#include <sched.h>

#include "src/base/cpu_relax.h"
#include "src/core/context.h"

namespace tutti::internal {
namespace {

constexpr uint32_t kEagerLooks = 200;  // empty looks without a pause between them: the answer of a peer that is there
constexpr uint32_t kSpins = 4096;      // empty looks before the core is offered to others, when alone on it
constexpr uint32_t kClockEvery = 256;  // empty looks between two looks at the clock
constexpr int64_t kSleepAfterUs = 20'000;
constexpr int64_t kSleepUs = 2'000;

}  // namespace

bool Waiter::pause() {
  if (context_.lock().contended()) context_.lock().hand_over();
  ++empty_looks_;
  if (context_.share_cpus() || empty_looks_ > kSpins) {
    sched_yield();
  } else if (empty_looks_ > kEagerLooks) {
    cpu_relax();
  }
  return (empty_looks_ % kClockEvery != 0 && limit_us_ > 0) || look_at_clock();
}

bool Waiter::look_at_clock() {
  const int64_t now = now_us();
  if (started_us_ < 0) started_us_ = now;
  context_.tick();
  if (now - started_us_ >= limit_us_) return false;
  if (empty_looks_ <= kClockEvery) empty_since_us_ = now;
  if (now - empty_since_us_ < kSleepAfterUs) return true;
  lock_.unlock();
  context_.transport().idle(Deadline::after_us(kSleepUs));
  lock_.lock();
  return true;
}

}  // namespace tutti::internal
