// The word on which a rank sleeps when it has waited for long, in its own region; peers wake it.
//
// A sleeper sets the word, looks once more at its rings, and waits on the futex with a timeout of a few milliseconds. A
// writer looks at the word after publishing a cell. There is no fence between its two accesses, for it would cost every
// message: the look may come before the cell is visible, and then the sleeper finds the cell at its timeout. So a lost
// wake-up costs at most that timeout, and never more.
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti::internal::shm {

class Doorbell {
 public:
  explicit Doorbell(uint32_t* word) : word_(word) {}

  // Any thread of any rank.
  void wake_if_asleep() {
    // pairs with sleep(): relaxed, see above.
    if (std::atomic_ref(*word_).load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }
  void wake();

  // Sleeps for `timeout_us` at most unless `ready()`; a wake-up ends it.
  template <class Ready>
  void sleep(int64_t timeout_us, Ready&& ready) {
    // pairs with wake_if_asleep: seq_cst, so that the look at the rings in ready() comes after it.
    std::atomic_ref(*word_).store(1, std::memory_order_seq_cst);
    if (!ready()) wait(timeout_us);
    std::atomic_ref(*word_).store(0, std::memory_order_relaxed);  // awake: a wake-up too many does no harm
  }

 private:
  void wait(int64_t timeout_us);

  uint32_t* word_;
};

}  // namespace tutti::internal::shm
