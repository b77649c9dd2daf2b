// Matching of messages with receives, per peer: two queues in order of arrival, of which at most one has an entry for
// any tag. Receives are posted in about the order in which messages come, so the first look mostly finds the match.
//
// A Request is a posted receive or receive-reduce; each of its messages is an Operand. Owner's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/kernel.h"
#include "transport/list.h"
#include "transport/shm/layout.h"
#include "transport/transport.h"

namespace tutti::internal::shm {

class Peer;
struct Request;

// A message as it came, in private memory: cell and lines put together.
struct Message {
  CellKind kind{};
  uint8_t length = 0;
  uint64_t channel = 0;
  uint64_t match = 0;
  alignas(8) std::array<std::byte, kInlineBytes> payload;
};

struct Operand : Links<Operand> {
  Request* request = nullptr;
  Peer* peer = nullptr;               // null: local memory
  const std::byte* source = nullptr;  // where the bytes can be read; null: only the kernel can (or not there yet)
  uint64_t match = 0;
  Message message;                // what came
  uint64_t streamed_bytes = 0;    // of a stream: how many have come
  std::vector<std::byte> bounce;  // of a stream that cannot be used as it comes
  bool posted = false;            // in its peer's list of posted operands
  bool arrived = false;
};

struct Request : Links<Request> {
  uint32_t index = 0;
  uint32_t generation = 0;
  bool live = false;
  bool working = false;  // in the list of requests that are moved in pieces
  uint64_t channel = 0;
  Ticket ticket = 0;
  std::byte* dst = nullptr;
  size_t bytes = 0;
  size_t done_bytes = 0;
  Reduction reduction;  // no kernel: a plain receive
  int operand_count = 0;
  int missing = 0;  // operands whose message is not there yet
  int message_count = 0;
  int capacity = 0;
  std::unique_ptr<Operand[]> operands;
};

// A message that no receive was posted for.
struct Unexpected : Links<Unexpected> {
  Message message;
};

struct Inbox {
  List<Operand> posted;
  List<Unexpected> unexpected;

  Operand* find_posted(uint64_t channel, uint64_t match) const {
    Operand* operand = posted.front();
    while (operand != nullptr && !(operand->match == match && operand->request->channel == channel))
      operand = operand->next;
    return operand;
  }
  Unexpected* find_unexpected(uint64_t channel, uint64_t match) const {
    Unexpected* entry = unexpected.front();
    while (entry != nullptr && !(entry->message.match == match && entry->message.channel == channel))
      entry = entry->next;
    return entry;
  }
};

}  // namespace tutti::internal::shm
