#include "transport/shm/arena.h"

namespace tutti::internal::shm {

Arena::Arena(std::byte* base) : base_(base) {
  for (size_t c = 0; c < kSlotClasses.size(); ++c) {
    const uint32_t first = slots_before(c);
    free_count_[c] = kSlotClasses[c].count;
    for (uint32_t i = 0; i < kSlotClasses[c].count; ++i)
      free_[first + i] = static_cast<uint16_t>(first + kSlotClasses[c].count - 1 - i);
  }
}

uint32_t Arena::take(size_t bytes, uint32_t readers) {
  for (size_t c = 0; c < kChunkClass; ++c) {
    if (kSlotClasses[c].slot_bytes < bytes) continue;
    if (const uint32_t slot = take_from(c, readers); slot != kNoSlot) return slot;
  }
  return kNoSlot;
}

uint32_t Arena::take_from(size_t slot_class, uint32_t readers) {
  if (free_count_[slot_class] == 0) return kNoSlot;
  const uint32_t slot = free_[slots_before(slot_class) + --free_count_[slot_class]];
  readers_[slot] = readers;
  ++used_;
  return slot;
}

void Arena::release(uint32_t slot) {
  if (--readers_[slot] != 0) return;
  const size_t slot_class = class_of_slot(slot);
  free_[slots_before(slot_class) + free_count_[slot_class]++] = static_cast<uint16_t>(slot);
  --used_;
}

}  // namespace tutti::internal::shm
