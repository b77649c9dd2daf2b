// Completions that wait for the owner's next poll, in order. Owner's thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/list.h"
#include "transport/transport.h"

namespace tutti::internal {

class Completions {
 public:
  Completions() { entries_.reserve(kUsualRequests); }

  void push(uint64_t channel, const Completion& completion) { entries_.push_back({channel, completion}); }

  size_t take(std::span<Completion> into) {
    const size_t count = std::min(into.size(), entries_.size() - taken_);
    for (size_t i = 0; i < count; ++i) into[i] = entries_[taken_ + i].completion;
    taken_ += count;
    if (taken_ == entries_.size()) {
      entries_.clear();
      taken_ = 0;
    }
    return count;
  }
  bool empty() const { return taken_ == entries_.size(); }

  void drop(uint64_t channel) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(taken_));
    taken_ = 0;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.channel == channel; });
  }

 private:
  struct Entry {
    uint64_t channel;
    Completion completion;
  };
  std::vector<Entry> entries_;
  size_t taken_ = 0;
};

}  // namespace tutti::internal
