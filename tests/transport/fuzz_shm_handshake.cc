// What comes from outside before a peer is known: its address in the store, and the packets of the handshake.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "transport/shm/shm_transport.h"
#include "transport/shm/socket.h"

namespace tutti::internal {
namespace {

struct Door {
  std::unique_ptr<ShmTransport> rank = std::move(*ShmTransport::create({.rank = 0, .world_size = 2}));
  shm::Address address = *shm::Address::decode(rank->address());
};

void knock(Door& door, std::span<const std::byte> packet) {
  auto socket = shm::connect_abstract(
      {door.address.socket_name.data(), strnlen(door.address.socket_name.data(), door.address.socket_name.size())},
      Deadline::after_us(1'000'000));
  if (!socket) std::abort();
  // A region of its own, as a peer has; without the nonce in its header.
  (void)shm::send_packet(socket->get(), packet, std::array{socket->get()});
  door.rank->serve(0);
  door.rank->serve(0);
}

void run(std::span<const std::byte> input) {
  static Door door;
  (void)shm::Address::decode({reinterpret_cast<const char*>(input.data()), input.size()});
  (void)door.rank->reachable({reinterpret_cast<const char*>(input.data()), input.size()});
  knock(door, input);
  // The same as a hello that is meant for us, so that what lies behind the first checks is reached.
  shm::Packet packet;
  std::memcpy(static_cast<void*>(&packet), input.data(), std::min(input.size(), sizeof packet));
  packet.magic = shm::kMagic;
  packet.version = shm::kVersion;
  packet.to_rank = 0;
  packet.to_nonce = door.address.nonce;
  packet.world_size = 2;
  knock(door, std::as_bytes(std::span(&packet, 1)));
  if (door.rank->take_failure().peer >= 0) std::abort();  // nobody was a peer
}

}  // namespace
}  // namespace tutti::internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::internal::run(std::as_bytes(std::span(data, size)));
  return 0;
}
