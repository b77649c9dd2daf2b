// A ring of one-line cells from one sender to one reader, in the reader's memory.
//
// Why it is right
//   Cell n lies at n % kRingCells and is valid when its turn is n / kRingCells + 1. The writer fills a cell and then
//   stores the turn with release; the reader that loads that turn with acquire sees the whole cell. A cell of the lap
//   before has another turn (turns of one cell differ by one), so an old cell is never taken for a new one.
//   A message that is longer than a cell's payload goes on in the lines that follow. They are written, with their
//   turns, before the cell's turn; the reader takes them with the cell and never looks at them by themselves. The
//   reader stores the count of cells that it has taken with release, about once per quarter of a ring; the writer loads
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

  // Whether so many cells may be written now.
  bool has_room(uint32_t count = 1) {
    if (next_ + count <= limit_) return true;
    // pairs with RingReader::pop: acquire, so that the reader's reads of the cell come before our writes to it.
    limit_ = std::atomic_ref(*consumed_).load(std::memory_order_acquire) + kRingCells;
    return next_ + count <= limit_;
  }
  // The cell to fill, and the payload of the lines after it; publish() makes them the reader's. Only after has_room.
  Cell& cell() { return cells_[next_ % kRingCells]; }
  std::byte* line(uint32_t i) { return reinterpret_cast<std::byte*>(&at(next_ + 1 + i)) + sizeof(Cell::turn); }
  void publish(uint32_t lines = 0) {
    // relaxed: nobody looks at these turns before the next store.
    for (uint64_t n = next_ + 1; n <= next_ + lines; ++n)
      std::atomic_ref(at(n).turn).store(turn_of(n), std::memory_order_relaxed);
    // pairs with RingReader::peek: release, so that the cell's contents, its lines, and what they point to come before
    // its turn.
    std::atomic_ref(cell().turn).store(turn_of(next_), std::memory_order_release);
    next_ += 1 + lines;
  }

 private:
  Cell& at(uint64_t number) { return cells_[number % kRingCells]; }

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
  // The payload of a line after the cell that peek() gave.
  const std::byte* line(uint32_t i) const {
    const uint64_t number = next_.load(std::memory_order_relaxed) + 1 + i;  // own value
    return reinterpret_cast<const std::byte*>(&cells_[number % kRingCells]) + sizeof(Cell::turn);
  }
  void pop(uint32_t lines = 0) {
    const uint64_t before = next_.load(std::memory_order_relaxed);  // own value
    const uint64_t next = before + 1 + lines;
    next_.store(next, std::memory_order_relaxed);  // see peek
    // pairs with RingWriter::has_room: release, so that our reads of the cells come before they are written again.
    if (next / kQuarter != before / kQuarter) std::atomic_ref(*consumed_).store(next, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kQuarter = kRingCells / 4;

  Cell* cells_;
  uint64_t* consumed_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace tutti::internal::shm
