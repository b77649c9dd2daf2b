#include "src/base/fork.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace tutti::internal {
namespace {

std::atomic<uint32_t> epoch{0};

// A plain array of descriptor + 1, 0 for a free place: the child of a fork may touch nothing that needs a lock. With
// more than this many descriptors the rest stays open in children: then a death is noticed by the other connections.
constexpr size_t kMostDescriptors = 4096;
std::array<std::atomic<int>, kMostDescriptors> descriptors{};

void in_child() {
  epoch.fetch_add(1, std::memory_order_relaxed);
  for (auto& place : descriptors)
    if (const int fd = place.exchange(0, std::memory_order_relaxed)) close(fd - 1);
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, in_child);

// Relaxed throughout: the places carry no other data, and fork copies them as they are.
bool replace(int from, int to) {
  for (auto& place : descriptors) {
    int expected = from;
    if (place.load(std::memory_order_relaxed) == from &&
        place.compare_exchange_strong(expected, to, std::memory_order_relaxed))
      return true;
  }
  return false;
}

}  // namespace

uint32_t process_epoch() { return epoch.load(std::memory_order_relaxed); }
void close_in_child(int fd) { replace(0, fd + 1); }
void release_from_fork(int fd) { replace(fd + 1, 0); }

}  // namespace tutti::internal
