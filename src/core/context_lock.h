// The one lock of a world: whoever calls into the library, or polls in it, holds it. A thread that waits in an
// operation keeps it as long as nobody else wants it, so that a process with one calling thread pays two uncontended
// atomic operations per call and none per poll.
//
// A lock outlives its world: handles reach their object through it, also handles that are used too late. Locks are
// therefore taken from a pool and never freed.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tutti::internal {

class ContextLock {
 public:
  void lock() {
    // pairs with unlock: acquire, so that all that was done under the lock is seen.
    if (held_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
      wait();
  }
  void unlock() {
    // pairs with lock. seq_cst: a thread that starts to wait sees the lock free, or is seen here.
    held_.store(0, std::memory_order_seq_cst);
    if (waiting_.load(std::memory_order_seq_cst) > 0) [[unlikely]]
      wake();
  }

  // Whether another thread waits for the lock that the caller holds.
  bool contended() const { return waiting_.load(std::memory_order_relaxed) > 0; }

  // Lets the threads that wait go first. The lock is not fair: the waiter must be seen to have left the queue.
  void hand_over() {
    constexpr int kMostYields = 100;
    unlock();
    for (int i = 0; i < kMostYields && contended(); ++i) sched_yield();
    lock();
  }

 private:
  [[gnu::cold]] void wait();
  [[gnu::cold]] void wake();

  std::atomic<int> held_{0};  // 1: by somebody
  std::atomic<int> waiting_{0};
};

using Locked = std::unique_lock<ContextLock>;

}  // namespace tutti::internal
