#include "src/core/waiter.h"

#include <sched.h>

#include "src/base/cpu_relax.h"
#include "src/core/context.h"

namespace tutti::internal {
namespace {

constexpr uint32_t kEagerLooks = 200;  // empty looks without a pause between them: the answer of a peer that is there
constexpr uint32_t kSpins = 4096;      // empty looks before the core is offered to others, when alone on it
constexpr int64_t kSleepUs = 2'000;

}  // namespace

// A software device works on the processors: whoever spins for what takes it long, takes them from it.
WaitHabit habit_for(bool shares_cpus, bool has_software_device) {
  return has_software_device ? WaitHabit{.yields = shares_cpus, .clock_every = 64, .patience_us = 200}
                             : WaitHabit{.yields = shares_cpus, .clock_every = 256, .patience_us = 20'000};
}

Waiter::Waiter(Context& context, Locked& lock, int64_t limit_us)
    : context_(context), habit_(context.wait_habit()), lock_(lock), limit_us_(limit_us) {}

bool Waiter::pause() {
  if (context_.lock().contended()) context_.lock().hand_over();
  ++empty_looks_;
  if (is_sleepy_) return look_at_clock();
  if (habit_.yields || empty_looks_ > kSpins) {
    sched_yield();
  } else if (empty_looks_ > kEagerLooks) {
    cpu_relax();
  }
  return (empty_looks_ % habit_.clock_every != 0 && limit_us_ > 0) || look_at_clock();
}

bool Waiter::look_at_clock() {
  const int64_t now = now_us();
  if (started_us_ < 0) started_us_ = now;
  context_.tick();
  if (now - started_us_ >= limit_us_) return false;
  if (empty_looks_ <= habit_.clock_every) empty_since_us_ = now;
  is_sleepy_ = now - empty_since_us_ >= habit_.patience_us;
  if (!is_sleepy_) return true;
  lock_.unlock();
  context_.transport().idle(Deadline::after_us(kSleepUs));
  lock_.lock();
  return true;
}

}  // namespace tutti::internal
