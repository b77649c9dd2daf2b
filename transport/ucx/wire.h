// What travels between two ranks: active messages of UCX, each with a frame (its header, and a body by its kind) and
// perhaps data. Both ends are of the same build (the store compares versions) and byte order. Nothing depends on the
// order in which they arrive.
//
// Short: one `message`. Long: the sender sends an `offer`, and the receiver, when it has a matching receive, a `grant`
// of all of it or of a part; the sender then sends `data` in pieces, straight from its memory, and UCX puts them where
// the grant's memory is, or hands them in whole, as the grant says. The receiver may give up at any time: pieces for a
// grant that is over are dropped, and an `answer` ends the send. A sender that gives up answers what is granted by
// `withdrawn`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transport/receives.h"
#include "transport/ucx/tuning.h"

namespace tutti::internal::ucx {

enum class Kind : uint8_t { message = 1, offer, grant, data, answer, withdrawn, goodbye };

struct Header {
  Kind kind{};
  std::array<uint8_t, 3> unused{};
  int32_t rank = -1;   // of the sender
  uint64_t nonce = 0;  // of the receiver's transport: a stale or foreign message does not know it
  Tag tag;
};
static_assert(sizeof(Header) == 32);

// A place in the receiver's memory.
struct GrantId {
  uint32_t index = 0;
  uint32_t generation = 0;
  bool operator==(const GrantId&) const = default;
};

struct GrantBody {
  SendId send;
  GrantId id;
  uint64_t offset = 0;  // in the message
  uint64_t bytes = 0;
  uint64_t whole_pieces = 0;  // if not 0, they may not come by UCX's rendezvous
};

struct DataBody {
  GrantId grant;
  uint64_t offset = 0;  // in the granted part
};

// To an offer: the message was dropped (ok), or has another length than is wanted.
struct AnswerBody {
  SendId send;
  uint64_t code = 0;
  uint64_t wanted_bytes = 0;
};

struct WithdrawnBody {
  GrantId grant;
};

// With how many messages it has sent, this one not counted: when all are there, it has left.
struct GoodbyeBody {
  uint64_t messages = 0;
};

inline constexpr size_t kMaxBodyBytes = sizeof(GrantBody);

// A header and its body, as they travel.
struct Frame {
  Header header;
  std::array<std::byte, kMaxBodyBytes> body;
  uint32_t bytes = sizeof(Header);

  template <class Body>
  void put(const Body& what) {
    static_assert(sizeof what <= kMaxBodyBytes);
    std::memcpy(body.data(), &what, sizeof what);
    bytes = sizeof header + sizeof what;
  }
};
static_assert(offsetof(Frame, body) == sizeof(Header));

template <class Body>
bool read_body(std::span<const std::byte> bytes, Body& body) {
  if (bytes.size() != sizeof body) return false;
  std::memcpy(&body, bytes.data(), sizeof body);
  return true;
}

}  // namespace tutti::internal::ucx
