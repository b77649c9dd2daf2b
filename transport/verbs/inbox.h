// Matching of messages with receives, per peer: receives that wait, and short messages and offers that came before
// their receive. A Request is a posted receive or receive-reduce; each of its messages is an Operand.
//
// Owner's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/kernel.h"
#include "transport/list.h"
#include "transport/transport.h"
#include "transport/verbs/tuning.h"
#include "transport/verbs/wire.h"

namespace tutti::internal::verbs {

class Peer;
struct Request;

struct Operand : Links<Operand> {
  Request* request = nullptr;
  Peer* peer = nullptr;  // null: local memory
  uint64_t match = 0;
  const std::byte* source = nullptr;  // of local memory, and of a short message that has come
  std::vector<std::byte> kept;        // a short message that waits for the others
  bool posted = false;                // in its peer's list of operands that wait
  bool offered = false;               // its sender has posted it
  bool arrived = false;               // short: it is here
};

// A part of a long message (of each of them, when they are reduced) in staging memory.
struct Part {
  bool under_way = false;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  int missing = 0;          // operands whose bytes have not come
  std::vector<int> chunks;  // by operand; -1 for local memory
};

struct Request : Links<Request> {
  bool live = false;
  bool hungry = false;  // in the list of requests that want staging memory
  uint64_t channel = 0;
  Ticket ticket = 0;
  std::byte* dst = nullptr;
  size_t bytes = 0;
  Reduction reduction;  // no kernel: a plain receive
  int operand_count = 0;
  int message_count = 0;
  int missing = 0;           // short messages that have not come
  uint64_t asked_bytes = 0;  // long: so much is granted
  uint64_t done_bytes = 0;
  size_t capacity = 0;
  std::unique_ptr<Operand[]> operands;
  std::array<Part, kPartsUnderWay> parts;
};

// Came before its receive: a short message with its bytes, or an offer.
struct Unexpected : Links<Unexpected> {
  uint64_t channel = 0;
  uint64_t match = 0;
  uint64_t bytes = 0;
  bool is_offer = false;
  SendId offer;
  std::vector<std::byte> data;
};

// Came before its send.
struct EarlyGrant : Links<EarlyGrant> {
  uint64_t channel = 0;
  uint64_t match = 0;
  GrantBody body;
};

struct Inbox {
  List<Operand> posted;
  List<Unexpected> unexpected;
  List<EarlyGrant> grants;

  Operand* find_posted(uint64_t channel, uint64_t match) const {
    Operand* operand = posted.front();
    while (operand != nullptr && !(operand->match == match && operand->request->channel == channel))
      operand = operand->next;
    return operand;
  }
  Unexpected* find_unexpected(uint64_t channel, uint64_t match) const { return find(unexpected, channel, match); }
  EarlyGrant* find_grant(uint64_t channel, uint64_t match) const { return find(grants, channel, match); }

 private:
  template <class T>
  static T* find(const List<T>& list, uint64_t channel, uint64_t match) {
    T* entry = list.front();
    while (entry != nullptr && !(entry->match == match && entry->channel == channel)) entry = entry->next;
    return entry;
  }
};

}  // namespace tutti::internal::verbs
