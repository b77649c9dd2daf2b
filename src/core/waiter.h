// How a rank waits. It spins while it has its core to itself, gives the core up at every empty look when ranks
// outnumber cores, and sleeps in the transport only when nothing has moved for long.
#pragma once

#include <cstdint>

#include "src/base/clock.h"
#include "src/core/context_lock.h"

namespace tutti::internal {

class Context;

class Waiter {
 public:
  Waiter(Context& context, Locked& lock, int64_t limit_us) : context_(context), lock_(lock), limit_us_(limit_us) {}

  // Something moved: patience starts anew.
  void moved() { empty_looks_ = 0; }
  // After a look that found nothing. False when the time is over. May let go of the lock for a while.
  bool pause();

 private:
  bool look_at_clock();

  Context& context_;
  Locked& lock_;
  int64_t limit_us_;
  int64_t started_us_ = -1;  // of the wait, taken at the first look at the clock
  int64_t empty_since_us_ = 0;
  uint32_t empty_looks_ = 0;
};

}  // namespace tutti::internal
