// Peers that have failed and have not been reported yet, each with the reason first seen. Any thread.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/unique_fd.h"
#include "transport/transport.h"

namespace tutti::internal {

class Failures {
 public:
  void push(int peer, std::string reason) {
    const std::scoped_lock lock(mutex_);
    failures_.push_back({peer, std::move(reason)});
    any_.store(true, std::memory_order_relaxed);  // a hint: the queue is read under the mutex
    eventfd_write(wake_fd_.get(), 1);
  }
  // peer -1: none.
  PeerFailure take() {
    const std::scoped_lock lock(mutex_);
    if (failures_.empty()) {
      eventfd_t count = 0;
      eventfd_read(wake_fd_.get(), &count);
      return {};
    }
    PeerFailure failure = std::move(failures_.front());
    failures_.erase(failures_.begin());
    any_.store(!failures_.empty(), std::memory_order_relaxed);
    return failure;
  }
  bool any() const { return any_.load(std::memory_order_relaxed); }  // a hint
  // Readable from a push until take() has found nothing more: whoever polls finds peers failed, and the watch thread is
  // who reports them. -1 for want of descriptors: then it finds them when it wakes for something else.
  int wake_fd() const { return wake_fd_.get(); }

 private:
  const UniqueFd wake_fd_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex_;
  std::vector<PeerFailure> failures_;
  std::atomic<bool> any_{false};
};

}  // namespace tutti::internal
