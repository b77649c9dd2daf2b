// One reliable connection on one path to a peer, with its accounts: room in the send queue, credits (receive buffers of
// the peer's that we may fill) and what we owe the peer of them.
//
// A message costs a credit, and so does a write with an immediate. Messages that return credits, and the goodbye, cost
// none: the receiver keeps buffers for them. Two are enough for the former, since each returns at least half of all
// credits, and the peer that has not read them has no others. So two ranks that only poll always get on.
//
// Owner's thread; create, connect and close: any one thread at a time.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "src/base/status.h"
#include "transport/verbs/queues.h"
#include "transport/verbs/settings.h"
#include "transport/verbs/tuning.h"
#include "transport/verbs/wire.h"

namespace tutti::internal::verbs {

struct Write;

// What a work request was for, to be done when it is complete.
struct Sent {
  Buffer* buffer = nullptr;  // of the queues', to be given back
  Write* write = nullptr;    // a piece of this
  int chunk = -1;            // staging memory that the piece was read from
};

// A piece of an RDMA write.
struct Piece {
  const void* data = nullptr;
  uint32_t key = 0;
  uint32_t bytes = 0;
  uint64_t remote_address = 0;
  uint32_t remote_key = 0;
  bool is_last = false;  // carries the immediate
  uint32_t immediate = 0;
  Sent sent;
};

// The other end of a connection, as far as the device needs to know it.
struct Remote {
  ibv_ah_attr way{};  // to its port
  ibv_mtu mtu = IBV_MTU_256;
  uint32_t pair_number = 0;
  uint32_t its_packet_number = 0;  // of its first packet
  uint32_t own_packet_number = 0;  // of ours
  uint16_t pkey_index = 0;
};

class QueuePair {
 public:
  // Errors: out_of_resources.
  static Result<std::unique_ptr<QueuePair>> create(Queues& queues, int port_index);
  ~QueuePair();

  // Ready to send and to receive, with receive buffers for the peer. Errors: unsupported (the device refuses, with its
  // reason), out_of_resources.
  Status connect(const Remote& remote, uint32_t peer_credits, const Settings& settings);
  // No more goes in or out: what is under way ends with an error. Any thread.
  void close();

  Queues& queues() { return queues_; }
  int port_index() const { return port_index_; }
  uint32_t number() const { return pair_->qp_num; }
  bool is_idle() const { return posted_ == retired_; }

  // Whether a message of so many bytes finds room, a credit and, if it needs one, a buffer, of which `buffers` are
  // wanted.
  bool can_send(size_t bytes, size_t buffers) const;
  // Both false where there is no room or no credit now. Messages that return credits and goodbyes always find a credit.
  bool send(Header header, std::span<const std::byte> body);
  bool write(const Piece& piece);
  // An empty write, unless the last one is under way: it takes no receive buffer and touches no memory of the peer's,
  // and ends with an error where nobody is there to acknowledge it. False: the device has refused it.
  bool check();
  // Room for so many more pieces.
  bool has_room() const { return posted_ - retired_ < kSendDepth - kReservedSends; }
  bool has_credit() const { return credits_ > 0; }

  // Of a request that the device has refused: the connection is of no more use. 0: none was.
  int refusal() const { return refusal_; }

  // A message has come: it used a buffer of ours, and brought `credits`.
  void received(const Header& header);
  void received_write() { ++owed_; }
  // Half of all credits are owed to the peer: a message of their own returns them.
  bool owes_many() const { return owed_ >= queues_.credits() / 2; }

  // The work request with this number, and all before it, are complete: calls `done(Sent&)` for each.
  template <class Done>
  void retire(uint64_t request, Done&& done) {
    while (retired_ <= request && retired_ < posted_) {
      Sent& sent = sent_[retired_ % kSendDepth];
      if (sent.buffer != nullptr) queues_.give_send_buffer(*sent.buffer);
      ++retired_;
      done(sent);
    }
  }
  // After close: as if all were complete.
  template <class Done>
  void retire_all(Done&& done) {
    if (posted_ > retired_) retire(posted_ - 1, done);
  }

 private:
  QueuePair(Queues& queues, int port_index) : queues_(queues), port_index_(port_index) {}
  int initialise(uint16_t pkey_index);
  bool post(ibv_send_wr& request, const Sent& sent, bool signalled);

  Queues& queues_;
  const int port_index_;
  ibv_qp* pair_ = nullptr;
  uint32_t inline_bytes_ = 0;
  uint32_t credits_ = 0;
  uint32_t owed_ = 0;
  uint64_t posted_ = 0;
  uint64_t retired_ = 0;
  uint64_t checked_ = 0;  // of posted_, up to the last check
  uint32_t unsignalled_ = 0;
  int refusal_ = 0;
  std::array<Sent, kSendDepth> sent_;
};

}  // namespace tutti::internal::verbs
