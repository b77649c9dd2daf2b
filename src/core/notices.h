// The box in which the watch thread leaves what it has learned about peers, for whoever polls to act on. One look costs
// a relaxed load as long as nothing is new.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace tutti::internal {

struct Notice {
  enum class Kind { peer_failed, aborted };
  Kind kind{};
  int rank = -1;         // the peer; aborted: who gave up
  uint64_t channel = 0;  // aborted: which group
  Code code = Code::ok;  // aborted: why
  int failed_rank = -1;  // aborted because of a peer_failed: whose; of a timeout: the first that it waits for
  std::string text;
  bool everyone_knows = false;  // it came from the store: the others have been told
};

class Notices {
 public:
  void put(Notice notice) {
    std::lock_guard guard(mutex_);
    notices_.push_back(std::move(notice));
    // pairs with any(): a hint that take() follows up under the mutex.
    count_.store(notices_.size(), std::memory_order_relaxed);
  }
  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
  std::vector<Notice> take() {
    std::lock_guard guard(mutex_);
    count_.store(0, std::memory_order_relaxed);
    return std::exchange(notices_, {});
  }

 private:
  std::atomic<size_t> count_{0};
  std::mutex mutex_;
  std::vector<Notice> notices_;
};

}  // namespace tutti::internal
