// The sender's staging slots: a message is copied here once and read by all its readers.
//
// Why it is right: a slot is written only between take() and the cells that name it (ring order makes the contents
// visible to their readers), and it becomes free when every reader has released it by a cell of its own, written after
// its last read. So no slot is written while someone reads it. The lists here are private to the owner's thread; only
// the slots' bytes are shared.
//
// The last class is for streams alone: its slots are read and released as soon as they arrive, so that a stream always
// moves on, whatever holds the other slots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/shm/layout.h"

namespace tutti::internal::shm {

inline constexpr uint32_t kNoSlot = UINT32_MAX;

class Arena {
 public:
  // `base`: kArenaBytes of the owner's region.
  explicit Arena(std::byte* base);

  // A slot for `bytes` <= kMaxStagedBytes that `readers` will release, or kNoSlot. Takes a larger size when the best
  // one is used up.
  uint32_t take(size_t bytes, uint32_t readers);
  uint32_t take_chunk(uint32_t readers) { return take_from(kChunkClass, readers); }
  std::byte* data(uint32_t slot) const { return base_ + slot_offset(slot); }
  // One reader is done with the slot.
  void release(uint32_t slot);
  uint32_t used() const { return used_; }

 private:
  uint32_t take_from(size_t slot_class, uint32_t readers);

  std::byte* base_;
  std::array<uint32_t, kSlotCount> readers_{};
  // Free slots of each class, stacked: the one used last, and so the one in the cache, goes first.
  std::array<uint16_t, kSlotCount> free_{};
  std::array<uint32_t, kSlotClasses.size()> free_count_{};
  uint32_t used_ = 0;
};

}  // namespace tutti::internal::shm
