#include "src/core/lock_pool.h"

#include <mutex>
#include <vector>

namespace tutti::internal {
namespace {

struct Pool {
  std::mutex mutex;
  std::vector<ContextLock*> free;
};

// Never destroyed: handles are looked up during exit too.
Pool& pool() {
  static Pool& pool = *new Pool;
  return pool;
}

}  // namespace

void ContextLock::wait() {
  waiting_.fetch_add(1, std::memory_order_seq_cst);  // pairs with unlock, see there
  while (held_.exchange(1, std::memory_order_seq_cst) != 0) held_.wait(1, std::memory_order_relaxed);
  waiting_.fetch_sub(1, std::memory_order_relaxed);  // a hint too many does no harm
}

void ContextLock::wake() { held_.notify_one(); }

ContextLock& take_lock() {
  std::lock_guard guard(pool().mutex);
  if (pool().free.empty()) return *new ContextLock;
  ContextLock* lock = pool().free.back();
  pool().free.pop_back();
  return *lock;
}

void return_lock(ContextLock& lock) {
  std::lock_guard guard(pool().mutex);
  pool().free.push_back(&lock);
}

}  // namespace tutti::internal
