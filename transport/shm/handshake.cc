#include "transport/shm/handshake.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transport/shm/copy.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace tutti::internal::shm {

Handshake::Handshake(const Region& region, const Address& own, int world_size)
    : region_(region),
      own_(own),
      world_size_(world_size),
      probe_(std::make_unique<uint64_t>(random_u64())),
      process_(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))) {}

Packet Handshake::packet(PacketKind kind, int to_rank, uint64_t to_nonce) const {
  Packet packet;
  packet.kind = kind;
  packet.rank = own_.rank;
  packet.to_rank = to_rank;
  packet.world_size = world_size_;
  packet.nonce = region_.nonce();
  packet.to_nonce = to_nonce;
  packet.region_bytes = region_.bytes();
  packet.probe_address = reinterpret_cast<uint64_t>(probe_.get());
  packet.probe_value = *probe_;
  return packet;
}

int Handshake::send(int socket, const Packet& packet) const {
  const std::array<int, kMaxPassedFds> fds{region_.fd(), process_.get()};
  const bool carries = packet.kind == PacketKind::hello || packet.kind == PacketKind::welcome;
  const size_t count = !carries ? 0 : process_ ? 2 : 1;
  return send_packet(socket, std::as_bytes(std::span(&packet, 1)), std::span(fds.data(), count));
}

Status Handshake::parse(std::span<const std::byte> bytes, Packet& packet) {
  Packet found;
  if (bytes.size() != sizeof found)
    return Status(Code::mismatch,
                  fmt::format("a handshake packet of {} bytes, {} expected", bytes.size(), sizeof found));
  std::memcpy(&found, bytes.data(), sizeof found);
  if (found.magic != kMagic || found.version != kVersion)
    return Status(Code::mismatch, fmt::format("a handshake packet of version {:#x}/{}, {:#x}/{} expected", found.magic,
                                              found.version, kMagic, kVersion));
  found.text.back() = '\0';
  packet = found;
  return {};
}

Status Handshake::check_hello(const Packet& hello) const {
  if (hello.to_nonce != region_.nonce() || hello.to_rank != own_.rank)
    return Status(Code::mismatch, fmt::format("the hello is for rank {} of another job", hello.to_rank));
  if (hello.world_size != world_size_ || hello.rank < 0 || hello.rank >= world_size_)
    return Status(Code::mismatch, fmt::format("the hello is from rank {} of {}, this is rank {} of {}", hello.rank,
                                              hello.world_size, own_.rank, world_size_));
  return {};
}

Result<Acquaintance> Handshake::meet(int socket, const Packet& packet, Received& received) const {
  auto credentials = credentials_of(socket);
  if (!credentials) return credentials.status();
  if (!received.fds[0]) return Status(Code::mismatch, "the packet carries no region");
  auto mapping = map_peer_region(received.fds[0].get(), packet.nonce, packet.region_bytes, own_.rank, region_.layout());
  if (!mapping) return mapping.status();
  Acquaintance met;
  met.mapping = std::move(*mapping);
  met.access.pid = credentials->pid;
  // Rules that could be read (ptrace_scope, capabilities, seccomp, namespaces) are many: only a trial tells.
  uint64_t value = 0;
  met.access.we_read =
      met.mapping.same_process ||
      (credentials->pid > 0 && read_process(credentials->pid, packet.probe_address, &value, sizeof value) == 0 &&
       value == packet.probe_value);
  met.access.it_reads = packet.can_read != 0;
  met.process = std::move(received.fds[1]);
  return met;
}

Status Handshake::prepare_ring(int rank, Region& region) const {
  return region.reserve(region.layout().ring_offset(rank), region.layout().ring_bytes());
}

}  // namespace tutti::internal::shm
