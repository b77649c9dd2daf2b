// A connected peer: its mapped region, the ring to it and the ring from it, and what is under way with it.
//
// Built once by the connector; afterwards everything but `state` belongs to the owner's thread.
#pragma once

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "transport/shm/copy.h"
#include "transport/shm/doorbell.h"
#include "transport/shm/inbox.h"
#include "transport/shm/region.h"
#include "transport/shm/ring.h"
#include "transport/shm/tuning.h"

namespace tutti::internal::shm {

// Earlier reads, of whatever kind, come before later ones.
inline void read_fence() {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_acquire);  // the processor keeps reads in order by itself
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

enum class PeerState : uint8_t {
  connected,
  left,    // said goodbye: what it has sent is still to be read
  failed,  // died, broke the protocol, or the owner gave it up
};

// What both ends have found out about reading each other's ordinary memory.
struct PeerAccess {
  pid_t pid = 0;         // in our PID namespace
  bool we_read = false;  // by process_vm_readv, probed; or directly, in the same process
  bool it_reads = false;
};

class Peer {
 public:
  Peer(int peer_rank, int own_rank, const Region& own, PeerMapping mapping, const PeerAccess& access)
      : rank(peer_rank),
        access_(access),
        mapping_(std::move(mapping)),
        layout_(own.layout()),
        out_(at<Cell>(layout_.ring_offset(own_rank)), at<uint64_t>(layout_.consumed_offset(own_rank))),
        in_(own.at<Cell>(layout_.ring_offset(peer_rank)), own.at<uint64_t>(layout_.consumed_offset(peer_rank))),
        doorbell_(at<uint32_t>(layout_.doorbell_offset())) {
    backlog_.reserve(kUsualRequests);
    releases_.reserve(kUsualRequests);
  }

  const int rank;
  // Stored by the connector's threads, read by all; relaxed suffices: nothing else is published with it but `left`,
  // which is stored with release after the peer's last cell was written.
  std::atomic<PeerState> state{PeerState::connected};

  const PeerAccess& access() const { return access_; }
  bool same_process() const { return mapping_.same_process; }
  bool can_read_us() const { return access_.it_reads; }

  // Memory of the peer's region.
  const std::byte* slot(uint64_t slot_number) const {
    return base() + layout_.arena_offset() + slot_offset(static_cast<uint32_t>(slot_number));
  }
  const std::byte* base() const { return mapping_.mapping->base(); }
  size_t region_bytes() const { return mapping_.mapping->bytes(); }
  // Whether the peer has given up this send of its own.
  bool has_withdrawn(const SendId& id) const {
    auto* word = at<uint32_t>(layout_.withdrawn_offset()) + id.index % kMaxSends;
    // pairs with Outbox::cancel: the fence first, so that our reads of the memory come before this look.
    read_fence();
    return std::atomic_ref(*word).load(std::memory_order_relaxed) == id.generation;
  }

  bool has_room(uint32_t cells = 1) { return backlog_.empty() && out_.has_room(cells); }
  // Writes a message of `bytes` <= kInlineBytes. Only where there is room for its cell and lines.
  void write_inlined(uint64_t channel, uint64_t match, const void* data, size_t bytes);
  // Writes a cell; keeps it for flush() when the ring is full. `body`: `bytes` <= kCellBytes of payload.
  void write(CellKind kind, uint8_t length, uint64_t channel, uint64_t match, const void* body, size_t bytes);
  template <class Body>
  void write(CellKind kind, const Body& body, uint64_t channel = 0, uint64_t match = 0) {
    static_assert(sizeof(Body) <= kCellBytes);
    write(kind, 0, channel, match, &body, sizeof body);
  }

  // Notes that we are done with a slot of the peer's arena. Told with the next cell, or by flush().
  void release_slot(uint64_t slot_number);
  bool has_backlog() const { return !backlog_.empty(); }
  bool has_unsent() const { return !backlog_.empty() || !releases_.empty(); }
  // Sends what waits: the backlog, and released slots.
  void flush();

  const RingReader& in() const { return in_; }
  RingReader& in() { return in_; }

  Inbox inbox;
  std::bitset<kSlotCount> held;  // slots of our arena that the peer has yet to release

 private:
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(mapping_.mapping->base() + offset);
  }
  void publish(CellKind kind, uint8_t length, uint64_t channel, uint64_t match, const void* body, size_t bytes,
               uint32_t lines);
  void send_releases();

  PeerAccess access_;
  PeerMapping mapping_;
  const Layout& layout_;
  RingWriter out_;
  RingReader in_;
  Doorbell doorbell_;
  std::vector<Cell> backlog_;
  std::vector<uint16_t> releases_;
};

}  // namespace tutti::internal::shm
