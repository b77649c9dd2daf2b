// What travels between two ranks: messages, each with a header in front, and RDMA writes whose last piece carries an
// immediate. Both ends are of the same build (the store compares versions) and byte order.
//
// Short: one `message` into a receive buffer of the peer's. Long: the receiver sends a `grant` (clear to send: where,
// how much, with which keys) as soon as its memory is free; the sender writes there and ends with the grant's
// immediate. A sender that finds no grant sends an `offer`, so that lengths are compared and the receiver knows who has
// come. A grant ends in one of two ways: by its immediate, or by `withdrawn` (the sender will not write there any
// more), which a receiver that gives up asks for by `revoke`. A receiver that gives up a message of which it has
// granted only parts ends its revocations with `enough`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/receives.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {

// Up to here a message travels at once, through a receive buffer.
inline constexpr size_t kShortBytes = 4096;

enum class Kind : uint8_t { message = 1, offer, grant, answer, revoke, withdrawn, enough, credit, goodbye };

struct Header {
  Kind kind{};
  uint8_t unused = 0;
  uint16_t credits = 0;  // receive buffers that are free again since the last message on this queue pair
  uint32_t bytes = 0;    // after the header
  uint64_t channel = 0;
  uint64_t match = 0;
};
static_assert(sizeof(Header) == 24);

inline constexpr size_t kBufferBytes = sizeof(Header) + kShortBytes;

struct GrantBody {
  uint64_t message_bytes = 0;  // of the whole message, as the receiver expects it
  uint64_t offset = 0;         // the part of it that is granted
  uint64_t bytes = 0;
  uint64_t address = 0;
  uint32_t immediate = 0;
  uint32_t unused = 0;
  std::array<uint32_t, kMaxPorts> keys{};  // by queue pair
};

// To an offer: the message was dropped (ok), or has another length.
struct AnswerBody {
  SendId id;
  uint64_t found_bytes = 0;
  uint64_t code = 0;
};

// Of revoke and withdrawn.
struct GrantName {
  uint32_t immediate = 0;
};

inline constexpr size_t kMaxControlBytes = sizeof(GrantBody);

// The immediate of a grant's last piece; with several queue pairs, of the last piece on each.
struct Immediate {
  static constexpr uint32_t kMaxIndex = 0xffff;
  static constexpr uint32_t kGenerations = 0x1000;

  uint32_t index = 0;
  uint32_t generation = 0;
  uint32_t stripes = 1;  // said by the sender

  uint32_t pack() const { return index | generation << 16 | (stripes - 1) << 28; }
  static Immediate unpack(uint32_t word) {
    return {word & kMaxIndex, word >> 16 & (kGenerations - 1), (word >> 28) + 1};
  }
};
static_assert(kMaxPorts <= 16);

}  // namespace tutti::internal::verbs
