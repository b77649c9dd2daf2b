// What travels in a ping: who sends it, on which path, and whether he has heard the other. Parsed from outside: anybody
// who reaches the port can send one, so every field is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tutti::internal::verbs {

struct PingMessage {
  uint64_t to_nonce = 0;  // the reader's, which only ranks of its world know
  int rank = -1;          // who sends it
  int path = 0;           // its number, the same at both ends
  bool has_heard = false;

  bool operator==(const PingMessage&) const = default;

  // Fills `room`, of which a message needs kBytes; the rest is zeros.
  void encode(std::span<std::byte> room) const;
  // Nothing: it makes no sense, or is of another version.
  static std::optional<PingMessage> decode(std::span<const std::byte> bytes);
  static constexpr size_t kBytes = 24;
};

}  // namespace tutti::internal::verbs
