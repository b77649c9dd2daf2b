#include "transport/shm/window_allocator.h"

#include <algorithm>
#include <iterator>

#include "transport/shm/layout.h"

namespace tutti::internal::shm {

WindowAllocator::WindowAllocator(size_t begin, size_t end, size_t page_bytes, size_t large_alignment)
    : page_bytes_(page_bytes), large_alignment_(large_alignment) {
  if (end > begin) free_.emplace(begin, end - begin);
}

std::optional<size_t> WindowAllocator::allocate(size_t bytes) {
  if (bytes == 0 || bytes > largest_free()) return std::nullopt;
  const size_t wanted = round_up(bytes, page_bytes_);
  const size_t alignment = wanted >= large_alignment_ ? large_alignment_ : page_bytes_;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, length] = *it;
    const size_t start = round_up(begin, alignment);
    if (start - begin > length || length - (start - begin) < wanted) continue;
    free_.erase(it);
    if (start > begin) free_.emplace(begin, start - begin);
    if (begin + length > start + wanted) free_.emplace(start + wanted, begin + length - start - wanted);
    used_.emplace(start, wanted);
    return start;
  }
  return std::nullopt;
}

std::optional<size_t> WindowAllocator::release(size_t offset) {
  const auto used = used_.find(offset);
  if (used == used_.end()) return std::nullopt;
  const size_t length = used->second;
  used_.erase(used);
  auto it = free_.emplace(offset, length).first;
  if (const auto next = std::next(it); next != free_.end() && it->first + it->second == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it != free_.begin()) {
    const auto previous = std::prev(it);
    if (previous->first + previous->second == it->first) {
      previous->second += it->second;
      free_.erase(it);
    }
  }
  return length;
}

size_t WindowAllocator::largest_free() const {
  size_t largest = 0;
  for (const auto& [offset, length] : free_) largest = std::max(largest, length);
  return largest;
}

}  // namespace tutti::internal::shm
