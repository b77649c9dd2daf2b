// What a message cell says: its body, its length, and where its bytes can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/shm/layout.h"
#include "transport/shm/peer.h"

namespace tutti::internal::shm {

template <class Body>
Body body(const Cell& cell) {
  Body found;
  std::memcpy(&found, cell.payload.data(), sizeof found);
  return found;
}

inline bool is_offer(const Cell& cell) {
  return cell.kind == CellKind::window || cell.kind == CellKind::memory || cell.kind == CellKind::stream;
}

inline uint64_t message_bytes(const Cell& cell) {
  switch (cell.kind) {
    case CellKind::inlined: return cell.length;
    case CellKind::staged: return body<StagedBody>(cell).bytes;
    default: return body<OfferBody>(cell).bytes;
  }
}

// Null where the bytes are not in our address space. The cell must stay where it is while they are read.
inline const std::byte* readable(const Peer& peer, const Cell& cell) {
  switch (cell.kind) {
    case CellKind::inlined: return cell.payload.data();
    case CellKind::staged: return peer.slot(body<StagedBody>(cell).slot);
    case CellKind::window: return peer.base() + body<OfferBody>(cell).where;
    case CellKind::memory:
      return peer.same_process() ? reinterpret_cast<const std::byte*>(body<OfferBody>(cell).where) : nullptr;
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
