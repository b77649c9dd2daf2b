// The packets of the handshake, and what each end does with the other's: check it, map its region, probe its memory.
//
//   initiator                                acceptor (on its watch thread)
//   hello  + region, process descriptors  ->
//                                         <- welcome + region, process descriptors, "I can read your memory"
//   ready, "I can read your memory"       ->
// or, instead of welcome:                 <- busy (a connection the other way is there or under way), or refuse (why)
// Later: goodbye (orderly leave) or abandon (the sender has given the receiver up). Anything else is a stranger.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"
#include "transport/shm/address.h"
#include "transport/shm/peer.h"
#include "transport/shm/socket.h"

namespace tutti::internal::shm {

enum class PacketKind : uint32_t { hello = 1, welcome, ready, busy, refuse, goodbye, abandon };

struct Packet {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  PacketKind kind{};
  int32_t rank = -1;  // of the sender
  int32_t to_rank = -1;
  int32_t world_size = 0;
  uint32_t can_read = 0;  // welcome, ready: the sender reads the receiver's ordinary memory
  uint64_t nonce = 0;     // of the sender's region
  uint64_t to_nonce = 0;  // of the receiver's, from its address: proves that the sender read it
  uint64_t region_bytes = 0;
  uint64_t probe_address = 0;    // in the sender's private memory lies
  uint64_t probe_value = 0;      // this
  int32_t code = 0;              // refuse: the Code
  std::array<char, 156> text{};  // refuse: why
};

// What one end has learned of the other.
struct Acquaintance {
  PeerMapping mapping;
  PeerAccess access;
  UniqueFd process;  // becomes readable when the peer's process ends; none where the kernel has no such thing
};

class Handshake {
 public:
  Handshake(const Region& region, const Address& own, int world_size);

  Packet packet(PacketKind kind, int to_rank, uint64_t to_nonce) const;
  // 0 or errno. Hello and welcome carry descriptors.
  int send(int socket, const Packet& packet) const;

  // Fills `packet` from what came; mismatch if it is not one of ours.
  static Status parse(std::span<const std::byte> bytes, Packet& packet);
  // Whether a hello is meant for us and fits.
  Status check_hello(const Packet& hello) const;
  // Maps the sender's region and probes its memory.
  Result<Acquaintance> meet(int socket, const Packet& packet, Received& received) const;

  // Makes the memory of the ring of `rank` to us. Before the other end learns of our region.
  Status prepare_ring(int rank, Region& region) const;

 private:
  const Region& region_;
  const Address& own_;
  int world_size_;
  std::unique_ptr<uint64_t> probe_;
  UniqueFd process_;
};

}  // namespace tutti::internal::shm
