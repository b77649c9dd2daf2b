// Registered memory in chunks, for parts of messages that cannot go straight to or from where they belong. Taken from
// the system when it is first needed. Owner's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/kernel.h"
#include "src/base/status.h"
#include "transport/windows.h"

namespace tutti::internal {

inline constexpr size_t kChunkBytes = size_t{64} << 10;
inline constexpr uint32_t kChunkCount = 128;
static_assert(kChunkCount / 2 >= kMaxOperands, "a reduction of many fits into half of them");

class Staging {
 public:
  static constexpr size_t kBytes = kChunkBytes * kChunkCount;

  explicit Staging(Registry& registry) : registry_(registry) {}
  ~Staging();

  // Errors: out_of_resources. Idempotent.
  Status prepare();
  bool is_ready() const { return memory_ != nullptr; }
  size_t available() const { return free_.size(); }
  // -1: none is free.
  int take();
  void give(int chunk) { free_.push_back(chunk); }
  std::byte* data(int chunk) const { return memory_ + static_cast<size_t>(chunk) * kChunkBytes; }

 private:
  Registry& registry_;
  std::byte* memory_ = nullptr;
  std::vector<int> free_;
};

}  // namespace tutti::internal
