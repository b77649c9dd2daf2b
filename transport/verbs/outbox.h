// The sending half. A short message goes at once, copied. A long one waits for its receiver's grant, and is written
// from where it lies (or, where that cannot be registered, through staging memory) to where the grant says; it is
// complete when the device knows that all of it has arrived. Owner's thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_set>
#include <vector>

#include "transport/completions.h"
#include "transport/list.h"
#include "transport/transport.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/registrar.h"
#include "transport/verbs/staging.h"

namespace tutti::internal::verbs {

struct Send;

// A grant that is being fulfilled.
struct Write : Links<Write> {
  Send* send = nullptr;
  Peer* peer = nullptr;
  GrantBody grant;
  // What each queue pair carries of it: the next byte and the end, as offsets into the grant's part.
  struct Stripe {
    uint64_t next = 0;
    uint64_t end = 0;
    bool finished = false;  // its last piece is posted
  };
  std::array<Stripe, kMaxPorts> stripes;
  uint32_t stripe_count = 0;
  uint32_t outstanding = 0;  // pieces that the device works on
  bool given_up = false;     // nothing more is posted
};

struct Send : Links<Send> {
  struct Reader {
    Peer* peer = nullptr;
    uint64_t match = 0;
    bool offered = false;
    uint64_t written = 0;
    uint32_t writes = 0;  // that are not over
    bool enough = false;  // no more will be granted
  };
  SendId id;
  bool live = false;
  uint64_t channel = 0;
  Ticket ticket = 0;
  const std::byte* data = nullptr;
  uint64_t bytes = 0;
  const Registration* source = nullptr;  // null: it cannot be registered
  Code code = Code::ok;
  uint64_t found_bytes = 0;
  uint32_t writes = 0;          // to all readers
  std::vector<Reader> readers;  // that are not done
};

class Outbox {
 public:
  Outbox(Registrar& registrar, Staging& staging, Completions& completions,
         const std::unordered_set<uint64_t>& cancelled, uint64_t max_piece_bytes);

  // `peers[i]` is connected and stands for request.to[i]; they are distinct.
  Post send(const SendRequest& request, std::span<Peer* const> peers);

  // False: the peer has sent what makes no sense.
  bool on_grant(Peer& peer, const Header& header, const GrantBody& grant);
  bool on_answer(Peer& peer, const AnswerBody& answer);
  void on_enough(const Peer& peer, const Header& header);
  void on_revoke(Peer& peer, const Header& header, const GrantName& name);
  // A piece has arrived, or will never.
  void on_sent(const Sent& sent);

  // Posts what finds room now; whether anything moved.
  bool advance();
  bool has_work() const { return !writes_.empty(); }

  // Gives up the sends of the channel. Their memory may still be read as long as is_reading.
  void cancel(uint64_t channel, std::span<Peer* const> peers);
  bool is_reading(const Peer& peer, uint64_t channel) const;
  void forget(uint64_t channel, std::span<Peer* const> peers);
  // The peer is closed: nothing more is written to it.
  void drop(Peer& peer);
  // Whether a send waits for the peer.
  bool waits_for(const Peer& peer) const;

  // How many bytes were written straight from the sender's memory, and through a copy.
  uint64_t direct_bytes() const { return direct_bytes_; }
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  Post send_short(const SendRequest& request, std::span<Peer* const> peers);
  Post send_long(const SendRequest& request, std::span<Peer* const> peers);
  void offer(Send& send, Send::Reader& reader);
  Send& take();
  Send* find(const SendId& id);
  Send* find(const Peer& peer, const Header& header);
  static Send::Reader* reader_of(Send& send, const Peer& peer);
  void take_grant(Send& send, Peer& peer, const GrantBody& grant);
  void start(Send& send, Send::Reader& reader, const GrantBody& grant);
  bool post_pieces(Write& write);
  bool post_piece(Write& write, uint32_t stripe);
  void end_if_over(Write& write);
  template <class Which>
  void give_up_writes(Which which);
  void drop_grants(Peer& peer, uint64_t channel, bool tell);
  void reader_done(Send& send, Send::Reader& reader);
  void retire(Send& send);
  void free(Send& send);

  Registrar& registrar_;
  Staging& staging_;
  Completions& completions_;
  const std::unordered_set<uint64_t>& cancelled_;
  const uint64_t max_piece_bytes_;
  std::deque<Send> sends_;
  std::vector<uint32_t> free_sends_;
  List<Send> live_;
  Pool<Write> write_pool_;
  List<Write> writes_;
  Pool<EarlyGrant> grant_pool_;
  uint64_t direct_bytes_ = 0;
  uint64_t copied_bytes_ = 0;
};

}  // namespace tutti::internal::verbs
