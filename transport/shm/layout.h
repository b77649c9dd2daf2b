// What lies where in the memory that ranks of a node share, and what a cell of a ring looks like.
//
// Each rank owns one region, a memfd that its peers map:
//   header      written once by the owner before anyone maps it
//   doorbell    one word: the owner sleeps
//   consumed    a line per sender: how many cells of its ring the owner has taken
//   withdrawn   a word per send of the owner: the generation that the owner has given up
//   rings       one per sender (world rank), written by that sender only
//   arena       the owner's staging slots
//   windows     what the owner has allocated for its user
// Pages that nobody touches cost nothing, so rings of ranks that never connect are free.
//
// docs/memory_model.md lists every word with its writer and its order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tutti::internal::shm {

inline constexpr size_t kLine = 64;
inline constexpr uint64_t kMagic = 0x31306d6873747474;  // "tttshm01"
inline constexpr uint32_t kVersion = 1;

inline constexpr uint32_t kRingCells = 128;
inline constexpr size_t kCellBytes = 40;  // of payload
inline constexpr size_t kLineBytes = 60;  // of payload in a line that follows a cell
inline constexpr uint32_t kMaxLines = 3;  // that follow
inline constexpr size_t kInlineBytes = kCellBytes + kMaxLines * kLineBytes;
inline constexpr uint32_t kMaxSends = 16384;  // offers of one rank under way at a time

enum class CellKind : uint8_t {
  // Messages: what a receive matches.
  inlined = 1,  // the bytes are in the cell, and in lines that follow it
  staged,       // StagedBody: a slot of the sender's arena, shared by all its readers
  window,       // OfferBody: memory in the sender's region
  memory,       // OfferBody: ordinary memory of the sender's
  stream,       // OfferBody: ordinary memory that the reader cannot reach: comes in chunks after `go`
  // Control.
  chunk,    // ChunkBody: a piece of a stream
  go,       // GoBody: the reader is ready for the chunks
  ack,      // AckBody: the reader is done with an offer
  release,  // `length` slot numbers: the reader is done with these slots
  goodbye,  // the last cell: the writer leaves the world
};
constexpr bool is_message(CellKind kind) { return kind <= CellKind::stream; }

// One message of a ring: one cache line that moves between two cores.
struct alignas(kLine) Cell {
  uint32_t turn;  // by std::atomic_ref only; the lap (from 1) in which the rest is valid
  CellKind kind;
  uint8_t length;     // inlined: bytes; release: slots
  uint16_t released;  // a slot of the reader's arena, plus 1, that the writer is done with; 0: none
  uint64_t channel;
  uint64_t match;
  std::array<std::byte, kCellBytes> payload;
};
static_assert(sizeof(Cell) == kLine);

static_assert(offsetof(Cell, turn) == 0 && kLineBytes == sizeof(Cell) - sizeof(Cell::turn));

// How many lines follow the cell of a message with this many bytes inlined. Such a line is a cell of which all but the
// turn is payload; the turn is kept, so that bytes of a message are never taken for one.
constexpr uint32_t lines_of(size_t bytes) {
  return bytes <= kCellBytes ? 0 : static_cast<uint32_t>((bytes - kCellBytes + kLineBytes - 1) / kLineBytes);
}
static_assert(lines_of(kInlineBytes) == kMaxLines);

// A send of the offering rank: an index that is used again with the next generation.
struct SendId {
  uint32_t index;
  uint32_t generation;
};
// An operand of a receive of the reading rank.
struct OperandId {
  uint32_t request;
  uint32_t generation;
  uint32_t operand;
};

struct StagedBody {
  uint64_t bytes;
  uint64_t slot;
};
struct OfferBody {
  uint64_t where;  // window: offset in the region; memory: address
  uint64_t bytes;
  SendId id;
};
struct ChunkBody {
  uint64_t offset;
  uint32_t bytes;
  uint32_t slot;
  OperandId to;
};
struct GoBody {
  SendId id;
  OperandId to;
};
struct AckBody {
  SendId id;
  uint64_t found_bytes;  // what the reader expected
  uint64_t code;         // Code: ok or mismatch
};
inline constexpr size_t kReleasesPerCell = kCellBytes / sizeof(uint16_t);

struct RegionHeader {
  uint64_t magic;
  uint32_t version;
  int32_t rank;
  uint64_t nonce;
  uint64_t bytes;
  int32_t world_size;
  int32_t pid;
};

constexpr size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// Staging slots: a few sizes, so that a small message does not spread over cold memory.
struct SlotClass {
  uint32_t slot_bytes;
  uint32_t count;
};
inline constexpr std::array<SlotClass, 5> kSlotClasses{{{512, 64}, {2048, 64}, {8192, 64}, {32768, 32}, {65536, 16}}};
inline constexpr size_t kChunkClass = kSlotClasses.size() - 1;  // reserved for streams
inline constexpr size_t kChunkBytes = kSlotClasses[kChunkClass].slot_bytes;
inline constexpr size_t kMaxStagedBytes = kSlotClasses[kChunkClass - 1].slot_bytes;

constexpr uint32_t slots_before(size_t slot_class) {
  uint32_t slots = 0;
  for (size_t i = 0; i < slot_class; ++i) slots += kSlotClasses[i].count;
  return slots;
}
constexpr size_t bytes_before(size_t slot_class) {
  size_t bytes = 0;
  for (size_t i = 0; i < slot_class; ++i) bytes += size_t{kSlotClasses[i].slot_bytes} * kSlotClasses[i].count;
  return bytes;
}
inline constexpr uint32_t kSlotCount = slots_before(kSlotClasses.size());
inline constexpr size_t kArenaBytes = bytes_before(kSlotClasses.size());

constexpr size_t class_of_slot(uint32_t slot) {
  size_t slot_class = 0;
  while (slot >= slots_before(slot_class + 1)) ++slot_class;
  return slot_class;
}
constexpr size_t slot_offset(uint32_t slot) {
  const size_t slot_class = class_of_slot(slot);
  return bytes_before(slot_class) + size_t{slot - slots_before(slot_class)} * kSlotClasses[slot_class].slot_bytes;
}

// Offsets in a region of a world. The same on all ranks of a node, for they share a kernel and a page size.
class Layout {
 public:
  Layout(int world_size, size_t page_bytes)
      : page_(page_bytes),
        ring_stride_(round_up(kRingCells * sizeof(Cell), page_bytes)),
        withdrawn_(consumed_offset(world_size)),
        rings_(round_up(withdrawn_ + kMaxSends * sizeof(uint32_t), page_bytes)),
        arena_(rings_ + static_cast<size_t>(world_size) * ring_stride_),
        windows_(round_up(arena_ + kArenaBytes, kWindowAlignment)) {}

  static constexpr size_t kWindowAlignment = size_t{2} << 20;  // of a huge page

  size_t page_bytes() const { return page_; }
  size_t doorbell_offset() const { return page_; }
  size_t consumed_offset(int sender) const { return 2 * page_ + static_cast<size_t>(sender) * kLine; }
  size_t withdrawn_offset() const { return withdrawn_; }
  size_t ring_offset(int sender) const { return rings_ + static_cast<size_t>(sender) * ring_stride_; }
  size_t ring_bytes() const { return ring_stride_; }
  size_t arena_offset() const { return arena_; }
  size_t windows_offset() const { return windows_; }

 private:
  size_t page_;
  size_t ring_stride_;
  size_t withdrawn_;
  size_t rings_;
  size_t arena_;
  size_t windows_;
};

}  // namespace tutti::internal::shm
