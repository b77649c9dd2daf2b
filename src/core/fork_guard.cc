#include "src/core/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace tutti::internal {
namespace {

std::atomic<uint32_t> epoch{0};

void in_child() { epoch.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, in_child);

}  // namespace

uint32_t process_epoch() { return epoch.load(std::memory_order_relaxed); }

}  // namespace tutti::internal
