// The contract of a transport: a way to move slices of memory between this process and its peers.
//
// A transport knows peers by their world rank and messages by a Tag; it knows neither algorithms nor topology.
// Matching: a send with tag t to peer B meets the receive with tag t from this rank at B. A tag is used once per
// ordered pair of ranks while it is in flight, and afterwards may be used again. Sends may arrive before the receive is
// posted, in any order, and any number of them. Lengths must agree, else the receive completes with Code::mismatch, and
// so does the send unless it was complete before; other messages are not affected. A rank does not send to itself.
//
// Loss: a request that needs a peer which has failed, left or been disconnected does not complete; the owner cancels
// its channel. Requests with other peers go on. Destroying a transport is leaving: what its sends that are complete
// offered can still be received, and it is a failure to others only when they ask it for more, or have asked already.
//
// Threads: the owner serialises post_*, poll, cancel and the memory calls (core holds its context lock). address,
// serve, deliver and connect may run beside them on other threads.
//
// The data path (post_*, poll) does not allocate in steady state, lock, log or make a system call, large copies by the
// kernel apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/kernel.h"
#include "src/base/status.h"
#include "transport/prober.h"

namespace tutti::internal {

// Names a message between an ordered pair of ranks: the group, and in it operation sequence << 32 | message index.
struct Tag {
  uint64_t channel = 0;
  uint64_t match = 0;
  bool operator==(const Tag&) const = default;
};

// One end of a message: whom with, and which. `match` belongs to the request's channel.
struct Endpoint {
  int peer = -1;
  uint64_t match = 0;
};

// What the owner wants back when the request completes. Opaque to the transport.
using Ticket = uint64_t;

// Offers the same bytes to each of `to`. Complete when the memory may be changed again.
struct SendRequest {
  uint64_t channel = 0;
  std::span<const Endpoint> to;  // distinct peers; read during the call only
  uint64_t match_base = 0;       // added to each match
  const void* data = nullptr;
  size_t bytes = 0;
  Ticket ticket = 0;
};

// Receives one message into `data`. Complete when the bytes are there.
struct RecvRequest {
  uint64_t channel = 0;
  Endpoint from;
  void* data = nullptr;
  size_t bytes = 0;
  Ticket ticket = 0;
};

// One operand of a receive-reduce: a message (from.peer >= 0), or local memory.
struct ReduceOperand {
  Endpoint from;
  const void* local = nullptr;
};

// dst = operands[0] op operands[1] op ...: the messages' bytes and local memory, in the given order, in one pass.
// At least one operand is a message, and each message has element_count elements. dst may be equal to a local operand.
struct ReduceRequest {
  uint64_t channel = 0;
  std::span<const ReduceOperand> operands;  // at most kMaxOperands; read during the call only
  void* dst = nullptr;
  size_t element_count = 0;
  Reduction reduction;
  Ticket ticket = 0;
};

enum class Post : uint8_t {
  done,    // complete already: no Completion will follow
  posted,  // a Completion will follow
  later,   // nothing was taken: poll, then post again
  failed,  // nothing was taken: the peer has failed (take_failure says which), was disconnected or never connected
};

struct Completion {
  Ticket ticket = 0;
  // mismatch: the lengths of the two ends differ; aborted: the sender has cancelled what was offered; internal: the
  // transport's fault. After an error the memory of a receive may hold anything.
  Code code = Code::ok;
  size_t found_bytes = 0;  // mismatch: how many the other end has
};

// A peer that can no longer be reached, and what was seen.
struct PeerFailure {
  int peer = -1;
  std::string reason;
};

// A descriptor that becomes readable when there is something for serve() to do.
struct Watch {
  int fd = -1;
  uint64_t key = 0;  // handed to serve()
};

// Carries letters between the transports of two ranks while they are not connected: in order, through whatever made the
// world. Any thread; does not wait. A letter is short, and one to a rank that is gone is lost.
class Mail {
 public:
  virtual ~Mail() = default;
  virtual void send(int peer, std::string_view letter) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // "shm", "verbs", "ucx", "fake"; of several as one: "shm+verbs".
  virtual const char* name() const = 0;

  // What peers need to connect: bytes for the store. Fixed for the transport's life.
  virtual std::string address() const = 0;

  // Whether a peer with this address could be reached, and if not, why.
  virtual Status reachable(std::string_view peer_address) const = 0;

  // Whether the peer really answers there, at the cost of a connection: of addresses that look alike only one does.
  virtual Status answers(std::string_view peer_address, Deadline deadline) const = 0;

  // What tries whether packets come through to peers, where this transport can: asked for once, and gone before the
  // transport is.
  virtual std::unique_ptr<Prober> take_prober() { return nullptr; }

  // Makes the peer ready for post_*, blocking until `deadline` at most. Idempotent. Both ends may do it at once.
  // Errors: peer_failed, timeout, unsupported, out_of_resources.
  virtual Status connect(int peer, std::string_view peer_address, Deadline deadline) = 0;

  // Which of several ways leads to the peer. All peers of one request stand on one way.
  virtual int way_to(int /*peer*/) const { return 0; }

  // What to watch for incoming connections and lost peers, on one thread that calls serve(key) when it is readable.
  // The list may change in serve() and connect(); a change is announced through the descriptor of key 0.
  virtual std::vector<Watch> watches() = 0;
  virtual void serve(uint64_t key) = 0;

  // A letter of this peer has come; called on the thread of serve(). For transports that find each other by letters;
  // others send none.
  virtual void deliver(int /*peer*/, std::string_view /*letter*/) {}
  // The peer has left or died: no letter reaches it, nor comes from it any more. On the same thread.
  virtual void gets_no_letters(int /*peer*/) {}

  // Memory that peers reach directly, zeroed and page-aligned; `bytes` > 0. Belongs to the transport.
  virtual Result<void*> allocate(size_t bytes) = 0;
  // invalid_argument: not what allocate gave, or released already.
  virtual Status release(void* memory) = 0;
  // Makes the caller's memory known for direct transfer, until unregister.
  virtual Status register_memory(void* memory, size_t bytes) = 0;
  virtual Status unregister_memory(void* memory) = 0;

  virtual Post post_send(const SendRequest& request) = 0;
  virtual Post post_recv(const RecvRequest& request) = 0;
  virtual Post post_reduce(const ReduceRequest& request) = 0;

  // Moves everything that can move, and fills `completions` with what has completed; returns how many. What finds no
  // room there is given by a later call.
  virtual size_t poll(std::span<Completion> completions) = 0;

  // Forgets every request of the channel: when it returns, their memory is no longer touched by this process, and no
  // Completion for them will follow. Messages of the channel that are there or still arrive are dropped, and to their
  // senders count as received. Nothing more is posted on the channel. What this rank had sent on it and is not complete
  // arrives whole, completes its receive with Code::aborted, or does not arrive.
  virtual void cancel(uint64_t channel) = 0;
  // The channel is used no more by any rank: what cancel remembers of it may be forgotten.
  virtual void forget(uint64_t channel) = 0;

  // The owner has learned that a peer is gone: no more requests to it succeed.
  virtual void disconnect(int peer) = 0;

  // A peer that failed since the last call, each reported once; peer -1: none. May be called on any thread.
  // As long as there is one, a descriptor of `watches` is readable, whichever thread has found the peer failed.
  virtual PeerFailure take_failure() = 0;

  // Whether something posted here cannot complete before this peer has sent or taken something. For messages to people;
  // a transport that does not know says yes.
  virtual bool waits_for(int peer) const { return peer >= 0; }

  // Whether a message of this peer with one of `count` matches from `first` on is here already, though what it is for
  // waits for other peers. For messages to people; a transport that does not know says no.
  virtual bool has_heard(int /*peer*/, uint64_t /*channel*/, uint64_t /*first*/, uint64_t /*count*/) const {
    return false;
  }

  // For waiting: sleeps until a peer may have sent something or `deadline`, a fraction of a millisecond at least and
  // some milliseconds at most. Called when polling has found nothing for long. May be called without the owner's lock.
  virtual void idle(Deadline deadline) = 0;
};

}  // namespace tutti::internal
