// Peers that have failed and have not been reported yet, each with the reason first seen. Any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace tutti::internal {

class Failures {
 public:
  void push(int peer, std::string reason) {
    const std::scoped_lock lock(mutex_);
    failures_.push_back({peer, std::move(reason)});
    any_.store(true, std::memory_order_relaxed);  // a hint: the queue is read under the mutex
  }
  // peer -1: none.
  PeerFailure take() {
    if (!any()) return {};
    const std::scoped_lock lock(mutex_);
    if (failures_.empty()) return {};
    PeerFailure failure = std::move(failures_.front());
    failures_.erase(failures_.begin());
    any_.store(!failures_.empty(), std::memory_order_relaxed);
    return failure;
  }
  bool any() const { return any_.load(std::memory_order_relaxed); }  // a hint

 private:
  std::mutex mutex_;
  std::vector<PeerFailure> failures_;
  std::atomic<bool> any_{false};
};

}  // namespace tutti::internal
