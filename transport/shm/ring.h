// A ring of one-line cells from one sender to one reader, in the reader's memory.
//
// Why it is right
//   Cell n lies at n % kRingCells and is valid when its turn is n / kRingCells + 1. The writer fills a cell and then
//   stores the turn with release; the reader that loads that turn with acquire sees the whole cell. A cell of the lap
//   before has another turn (turns of one cell differ by one), so an old cell is never taken for a new one.
//   The reader stores the count of cells that it has taken with release, once per quarter of a ring; the writer loads
//   it with acquire before it writes cell n >= count + kRingCells, so no cell is overwritten before it was read. The
//   writer stops at the latest a ring ahead of the published count. A reader that has taken everything has published
//   all but less than a quarter, so the writer can always go on once the reader has polled: no message waits for an
//   acknowledgement that itself needs room in a full ring for ever.
//
// One writer, one reader, each on the thread that owns its transport.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/shm/layout.h"

namespace tutti::internal::shm {

constexpr uint32_t turn_of(uint64_t number) { return static_cast<uint32_t>(number / kRingCells) + 1; }

class RingWriter {
 public:
  RingWriter(Cell* cells, uint64_t* consumed) : cells_(cells), consumed_(consumed) {}

  // Whether a cell may be written now.
  bool has_room() {
    if (next_ < limit_) return true;
    // pairs with RingReader::pop: acquire, so that the reader's reads of the cell come before our writes to it.
    limit_ = std::atomic_ref(*consumed_).load(std::memory_order_acquire) + kRingCells;
    return next_ < limit_;
  }
  // The cell to fill; publish() makes it the reader's. Only after has_room.
  Cell& cell() { return cells_[next_ % kRingCells]; }
  void publish() {
    // pairs with RingReader::peek: release, so that the cell's contents, and what they point to, come before its turn.
    std::atomic_ref(cell().turn).store(turn_of(next_), std::memory_order_release);
    ++next_;
  }

 private:
  Cell* cells_;
  uint64_t* consumed_;
  uint64_t next_ = 0;
  uint64_t limit_ = kRingCells;
};

class RingReader {
 public:
  RingReader(Cell* cells, uint64_t* consumed) : cells_(cells), consumed_(consumed) {}

  // The next cell, or null. Valid until pop().
  const Cell* peek() const {
    // `next_` is stored by the owner's thread alone; other threads only ask (idle) and may see an old value.
    const uint64_t next = next_.load(std::memory_order_relaxed);
    Cell& cell = cells_[next % kRingCells];
    // pairs with RingWriter::publish: acquire, see there.
    return std::atomic_ref(cell.turn).load(std::memory_order_acquire) == turn_of(next) ? &cell : nullptr;
  }
  void pop() {
    const uint64_t next = next_.load(std::memory_order_relaxed) + 1;  // own value
    next_.store(next, std::memory_order_relaxed);                     // see peek
    // pairs with RingWriter::has_room: release, so that our reads of the cells come before they are written again.
    if (next % (kRingCells / 4) == 0) std::atomic_ref(*consumed_).store(next, std::memory_order_release);
  }

 private:
  Cell* cells_;
  uint64_t* consumed_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace tutti::internal::shm
