// What the fake network knows of one rank: its requests, and the messages on their way to it or waiting for a receive.
//
// All of it is guarded by the network's lock. The containers take their memory from the network's pool, so that a test
// that runs in steady state allocates nothing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace tutti::internal::fake {

// A message as its receiver sees it.
struct Key {
  int from = -1;
  Tag tag;
  bool operator==(const Key&) const = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = key.tag.channel * 0x9e3779b97f4a7c15U + static_cast<uint64_t>(key.from);
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9U + key.tag.match;
    return static_cast<size_t>(hash ^ hash >> 32);
  }
};

inline constexpr uint64_t kBuffered = 0;

struct Message {
  Key key;
  uint64_t send = kBuffered;           // the sender's request, which waits for this reader
  const std::byte* offered = nullptr;  // the sender's memory, null once it is gone or the send was cancelled
  std::pmr::vector<std::byte> buffer;
  size_t bytes = 0;

  const std::byte* data() const { return send == kBuffered ? buffer.data() : offered; }
};

struct Send {
  uint64_t channel = 0;
  Ticket ticket = 0;
  size_t readers = 0;  // that do not have it yet
  Code code = Code::ok;
  size_t found_bytes = 0;
};

struct Operand {
  Key key;  // from < 0: local memory
  const std::byte* local = nullptr;
  bool arrived = false;
  Message message;

  const std::byte* data() const { return key.from < 0 ? local : message.data(); }
};

// A receive, or a receive-reduce (with a kernel).
struct Request {
  uint64_t channel = 0;
  Ticket ticket = 0;
  std::byte* dst = nullptr;
  size_t bytes = 0;
  Reduction reduction;
  size_t missing = 0;
  std::pmr::vector<Operand> operands;
};

struct Waiter {
  uint64_t request = 0;
  size_t operand = 0;
};

struct Done {
  uint64_t channel = 0;
  Completion completion;
};

enum class Link : uint8_t {
  none,
  connected,
  lost,          // died or left, and this rank knows it
  disconnected,  // by this rank
};

struct Node {
  Node(int rank_count, std::pmr::memory_resource* pool)
      : links(static_cast<size_t>(rank_count), Link::none),
        last_due(static_cast<size_t>(rank_count), 0),
        in_flight(pool),
        arrived(pool),
        waiting(pool),
        requests(pool),
        sends(pool),
        done(pool) {}

  bool exists = false;  // its transport was made
  bool gone = false;    // died or left
  uint64_t polls = 0;
  uint64_t posts = 0;
  uint64_t last_post = UINT64_MAX;  // it dies there
  std::vector<Link> links;
  std::vector<uint64_t> last_due;  // by sender: when the last of its messages is there

  // By when (in polls of this rank) they are there, then by age.
  std::pmr::multimap<uint64_t, Message> in_flight;
  std::pmr::unordered_map<Key, Message, KeyHash> arrived;
  std::pmr::unordered_map<Key, Waiter, KeyHash> waiting;
  std::pmr::unordered_map<uint64_t, Request> requests;
  std::pmr::unordered_map<uint64_t, Send> sends;
  std::pmr::multimap<uint64_t, Done> done;
  std::set<uint64_t> cancelled;
  std::map<void*, size_t> windows;
  std::map<void*, size_t> registered;

  std::multimap<uint64_t, PeerFailure> news;  // by when this rank learns of it
  std::vector<PeerFailure> failures;          // learnt, and not taken yet
  int watch_fd = -1;
  std::condition_variable moved;  // for idle
};

}  // namespace tutti::internal::fake
