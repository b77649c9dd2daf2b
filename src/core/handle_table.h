// Handles that can be used too late without harm. A handle is not an address but a slot number and the generation of
// its use: a handle that was freed, made up or inherited through fork is told apart from a good one, always.
//
// Slots live for ever and are used again. `object` and `users` of a slot are guarded by the slot's lock, which is the
// lock of the world that the object belongs to.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/fork.h"
#include "src/core/context_lock.h"

namespace tutti::internal {

template <class T>
class HandleTable {
 public:
  struct Slot {
    std::atomic<uint32_t> generation{0};  // odd: in use
    std::atomic<ContextLock*> lock{nullptr};
    uint32_t epoch = 0;
    T* object = nullptr;
    int users = 0;  // calls that are inside the object: it may not be destroyed under them
  };

  // A new handle to `object`. Never 0. Returns 0 when all slots are in use.
  uintptr_t insert(T* object, ContextLock& lock) {
    std::lock_guard guard(mutex_);
    uint32_t index;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      if (slot_count_ == kMostSlots) return 0;
      index = slot_count_;
      if (index % kChunk == 0) {
        owned_.push_back(std::make_unique<std::array<Slot, kChunk>>());
        // pairs with find: the chunk is there before a handle to it can be.
        chunks_[index / kChunk].store(owned_.back().get(), std::memory_order_release);
      }
      ++slot_count_;
    }
    Slot& slot = at(index);
    slot.object = object;
    slot.users = 0;
    slot.epoch = process_epoch();
    slot.lock.store(&lock, std::memory_order_relaxed);
    const uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;
    // pairs with find: whoever sees the generation sees the object and its lock.
    slot.generation.store(generation, std::memory_order_release);
    return static_cast<uintptr_t>(generation) << 32 | (index + 1);
  }

  // The slot of a handle, or null where the handle is none (any more). The caller locks slot->lock and asks is_current
  // again, since the handle may be freed in between.
  Slot* find(uintptr_t handle) const {
    const uint64_t index = (handle & 0xffffffffu) - 1;
    if (index >= kMostSlots) return nullptr;
    // pairs with insert
    auto* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    if (!chunk) return nullptr;
    Slot& slot = (*chunk)[index % kChunk];
    return is_current(slot, handle) ? &slot : nullptr;
  }

  static bool is_current(const Slot& slot, uintptr_t handle) {
    const uint32_t generation = slot.generation.load(std::memory_order_acquire);  // pairs with insert and erase
    return generation % 2 == 1 && generation == handle >> 32;
  }

  // From now on find refuses the handle. The slot's lock is held; the slot itself stays reserved until `recycle`.
  static void erase(Slot& slot) { slot.generation.fetch_add(1, std::memory_order_release); }  // pairs with is_current

  // Gives an erased slot back for use, when nobody is inside any more.
  void recycle(uintptr_t handle) {
    std::lock_guard guard(mutex_);
    free_.push_back(static_cast<uint32_t>((handle & 0xffffffffu) - 1));
  }

 private:
  static constexpr uint32_t kChunk = 256;
  static constexpr uint32_t kMostSlots = 1u << 24;

  Slot& at(uint32_t index) const { return (*chunks_[index / kChunk].load(std::memory_order_relaxed))[index % kChunk]; }

  std::array<std::atomic<std::array<Slot, kChunk>*>, kMostSlots / kChunk> chunks_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::array<Slot, kChunk>>> owned_;
  std::vector<uint32_t> free_;
  uint32_t slot_count_ = 0;
};

}  // namespace tutti::internal
