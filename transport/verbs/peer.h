// A peer that is connected, or was: its queue pairs, what has come from it and waits, and control messages that found
// no room yet. Made by the connector, then the owner's; `state` is written by both. What the owner has to see to raises
// the alarm that all peers share, so that a poll need not look at each of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "transport/receives.h"
#include "transport/verbs/inbox.h"
#include "transport/verbs/queue_pair.h"
#include "transport/verbs/wire.h"

namespace tutti::internal::verbs {

enum class PeerState : uint8_t {
  accepting,  // it can send to us, and does not know yet that we can send to it
  connected,
  left,    // it has said goodbye
  failed,  // its queue pairs are closed
};

class Peer : public Correspondent {
 public:
  Peer(int its_rank, std::vector<std::unique_ptr<QueuePair>> its_pairs, std::atomic<bool>& alarm)
      : rank(its_rank), pairs(std::move(its_pairs)), alarm_(alarm) {
    backlog_.reserve(kUsualRequests);
  }

  QueuePair& main_pair() { return *pairs.front(); }

  // Something about this peer has changed. Any thread.
  void raise_alarm() { alarm_.store(true, std::memory_order_release); }  // pairs with tend_all

  // A message for which there is room.
  void send(const Header& header, std::span<const std::byte> data) {
    if (!main_pair().send(header, data)) raise_alarm();
  }

  // Sends, now or when there is room; in order with other control messages.
  template <class Body>
  void control(Kind kind, uint64_t channel, uint64_t match, const Body& body) {
    static_assert(sizeof(Body) <= kMaxControlBytes);
    Control message;
    message.header = {.kind = kind, .channel = channel, .match = match};
    message.bytes = sizeof body;
    std::memcpy(message.body.data(), &body, sizeof body);
    post(message);
  }
  void control(Kind kind, uint64_t channel, uint64_t match) {
    Control message;
    message.header = {.kind = kind, .channel = channel, .match = match};
    post(message);
  }
  bool has_backlog() const { return backlog_head_ < backlog_.size(); }
  void flush();
  // Messages of their own for credits that the peer may be waiting for. False: for some there was no room.
  bool return_credits();
  // All that was sent is known to have arrived.
  bool is_idle() const;

  // Of a request that the device has refused; 0: none was.
  int refusal() const;

  // Nothing more goes in or out. Idempotent; any thread.
  void close();

  const int rank;
  const std::vector<std::unique_ptr<QueuePair>> pairs;  // by path; messages travel on the first
  std::atomic<PeerState> state{PeerState::accepting};
  Inbox inbox;
  std::atomic<bool> hung_up{false};  // rdma_cm says that it has closed the connection
  bool end_is_seen = false;          // a goodbye or that, by the owner, who takes what has come before
  bool is_buried = false;            // it has failed, and what was under way with it is given up

 private:
  struct Control {
    Header header;
    size_t bytes = 0;
    std::array<std::byte, kMaxControlBytes> body;
  };
  void post(const Control& message);
  bool try_send(const Control& message) {
    return main_pair().send(message.header, {message.body.data(), message.bytes});
  }

  std::atomic<bool>& alarm_;
  std::vector<Control> backlog_;  // oldest first from backlog_head_
  size_t backlog_head_ = 0;
  std::atomic<bool> closed_{false};
};

// Relaxed: the state alone matters. What else belongs to a peer is published with the peer itself.
inline PeerState state_of(const Peer& peer) { return peer.state.load(std::memory_order_relaxed); }

}  // namespace tutti::internal::verbs
