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
    if (mutex_.try_lock()) return;
    // pairs with contended(): only a hint, the mutex orders everything.
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }

  // Whether another thread waits for the lock that the caller holds.
  bool contended() const { return waiting_.load(std::memory_order_relaxed) > 0; }

  // Lets the threads that wait go first. A mutex is not fair: the waiter must be seen to have left the queue.
  void hand_over() {
    constexpr int kMostYields = 100;
    unlock();
    for (int i = 0; i < kMostYields && contended(); ++i) sched_yield();
    lock();
  }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_{0};
};

using Locked = std::unique_lock<ContextLock>;

}  // namespace tutti::internal
