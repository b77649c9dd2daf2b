// How a rank waits. It spins while it has its core to itself, gives the core up at every empty look when ranks
// outnumber cores, and sleeps in the transport when nothing has moved for long.
#pragma once

#include <cstdint>

#include "src/base/clock.h"
#include "src/core/context_lock.h"

namespace tutti::internal {

class Context;

struct WaitHabit {
  bool yields = false;       // the core at every empty look
  uint32_t clock_every = 0;  // empty looks between two looks at the clock
  int64_t patience_us = 0;   // of empty looks, before it sleeps
};
WaitHabit habit_for(bool shares_cpus, bool has_software_device);

class Waiter {
 public:
  Waiter(Context& context, Locked& lock, int64_t limit_us);

  // Something moved: patience starts anew.
  void moved() {
    empty_looks_ = 0;
    is_sleepy_ = false;
  }
  // After a look that found nothing. False when the time is over. May let go of the lock for a while.
  bool pause();

 private:
  bool look_at_clock();

  Context& context_;
  const WaitHabit& habit_;
  Locked& lock_;
  int64_t limit_us_;
  int64_t started_us_ = -1;  // of the wait, taken at the first look at the clock
  int64_t empty_since_us_ = 0;
  uint32_t empty_looks_ = 0;
  bool is_sleepy_ = false;  // until something moves
};

}  // namespace tutti::internal
