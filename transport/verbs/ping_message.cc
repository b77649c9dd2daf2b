#include "transport/verbs/ping_message.h"

#include <algorithm>
#include <cstring>

#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

constexpr uint32_t kMagic = 0x47505401;  // its last byte is the version

// As it travels: both ends are of the same build and byte order.
struct Flat {
  uint32_t magic = kMagic;
  int32_t rank = -1;
  uint64_t to_nonce = 0;
  uint8_t path = 0;
  uint8_t has_heard = 0;
  uint16_t unused = 0;
  uint32_t unused_too = 0;
};
static_assert(sizeof(Flat) == PingMessage::kBytes);

}  // namespace

void PingMessage::encode(std::span<std::byte> room) const {
  const Flat flat{.rank = rank,
                  .to_nonce = to_nonce,
                  .path = static_cast<uint8_t>(path),
                  .has_heard = has_heard ? uint8_t{1} : uint8_t{0}};
  std::ranges::fill(room, std::byte{0});
  std::memcpy(room.data(), &flat, sizeof flat);
}

std::optional<PingMessage> PingMessage::decode(std::span<const std::byte> bytes) {
  Flat flat;
  if (bytes.size() < sizeof flat) return std::nullopt;
  std::memcpy(&flat, bytes.data(), sizeof flat);
  if (flat.magic != kMagic || flat.rank < 0 || flat.path >= kMaxPorts || flat.has_heard > 1) return std::nullopt;
  const bool has_zeros =
      std::ranges::all_of(bytes.subspan(offsetof(Flat, unused)), [](std::byte byte) { return byte == std::byte{0}; });
  if (!has_zeros) return std::nullopt;
  return PingMessage{.to_nonce = flat.to_nonce, .rank = flat.rank, .path = flat.path, .has_heard = flat.has_heard == 1};
}

}  // namespace tutti::internal::verbs
