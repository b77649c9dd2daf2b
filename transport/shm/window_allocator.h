// Hands out intervals of a range: first fit, page granular, large ones aligned for huge pages. Pure bookkeeping: it
// touches no memory. Invariant: free and used intervals are disjoint, cover the range, and no two free ones touch.
// Runs on the owner's thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace tutti::internal::shm {

class WindowAllocator {
 public:
  WindowAllocator(size_t begin, size_t end, size_t page_bytes, size_t large_alignment);

  // The offset of `bytes` (> 0, rounded up to pages), or nothing when no free interval is long enough.
  std::optional<size_t> allocate(size_t bytes);
  // Gives back what starts at `offset`: its length, or nothing if nothing that is used starts there.
  std::optional<size_t> release(size_t offset);

  size_t largest_free() const;

 private:
  size_t page_bytes_;
  size_t large_alignment_;
  std::map<size_t, size_t> free_;  // offset -> bytes
  std::map<size_t, size_t> used_;
};

}  // namespace tutti::internal::shm
