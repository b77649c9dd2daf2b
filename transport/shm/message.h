// What a message cell says: its body, its length, and where its bytes can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/shm/layout.h"
#include "transport/shm/peer.h"

namespace tutti::internal::shm {

// Of a Cell or a Message.
template <class Body, class From>
Body body(const From& from) {
  static_assert(sizeof(Body) <= kCellBytes);
  Body found;
  std::memcpy(&found, from.payload.data(), sizeof found);
  return found;
}

// Copies the cell that `in` has come to, with its lines.
inline void take_message(const RingReader& in, const Cell& cell, Message& message) {
  message.kind = cell.kind;
  message.length = cell.length;
  message.channel = cell.channel;
  message.match = cell.match;
  std::memcpy(message.payload.data(), cell.payload.data(), kCellBytes);
  if (cell.kind != CellKind::inlined) return;
  for (uint32_t i = 0; i < lines_of(cell.length); ++i)
    std::memcpy(message.payload.data() + kCellBytes + i * kLineBytes, in.line(i), kLineBytes);
}

inline bool is_offer(const Message& message) {
  return message.kind == CellKind::window || message.kind == CellKind::memory || message.kind == CellKind::stream;
}

inline uint64_t message_bytes(const Message& message) {
  switch (message.kind) {
    case CellKind::inlined: return message.length;
    case CellKind::staged: return body<StagedBody>(message).bytes;
    default: return body<OfferBody>(message).bytes;
  }
}

// Null where the bytes are not in our address space. The message must stay where it is while they are read.
inline const std::byte* readable(const Peer& peer, const Message& message) {
  switch (message.kind) {
    case CellKind::inlined: return message.payload.data();
    case CellKind::staged: return peer.slot(body<StagedBody>(message).slot);
    case CellKind::window: return peer.base() + body<OfferBody>(message).where;
    case CellKind::memory:
      return peer.same_process() ? reinterpret_cast<const std::byte*>(body<OfferBody>(message).where) : nullptr;
    default: return nullptr;
  }
}

// A peer that has lost its mind must not take us along: what its cells point to lies where it should.
inline bool is_sound(const Peer& peer, const Cell& cell) {
  switch (cell.kind) {
    case CellKind::inlined: return cell.length <= kInlineBytes;
    case CellKind::staged: {
      const auto staged = body<StagedBody>(cell);
      return staged.slot < kSlotCount &&
             staged.bytes <= kSlotClasses[class_of_slot(static_cast<uint32_t>(staged.slot))].slot_bytes;
    }
    case CellKind::window: {
      const auto offer = body<OfferBody>(cell);
      return offer.bytes <= peer.region_bytes() && offer.where <= peer.region_bytes() - offer.bytes;
    }
    default: return true;
  }
}

}  // namespace tutti::internal::shm
