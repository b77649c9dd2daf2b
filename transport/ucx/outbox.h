// The sending half. A short message goes at once, copied. A long one is offered, waits for its receiver's grants, and
// goes piece by piece from where it lies; it is complete when UCX has done with all of it. Owner's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "transport/completions.h"
#include "transport/list.h"
#include "transport/transport.h"
#include "transport/ucx/sender.h"
#include "transport/ucx/wire.h"

namespace tutti::internal::ucx {

struct Send;

// A grant that is being fulfilled.
struct Write : Links<Write> {
  Send* send = nullptr;
  Peer* peer = nullptr;
  GrantBody grant;
  uint64_t match = 0;
  uint64_t posted = 0;       // so much is posted
  uint32_t outstanding = 0;  // pieces that UCX works on
  bool given_up = false;     // nothing more is posted
};

struct Send : Links<Send> {
  struct Reader {
    Peer* peer = nullptr;
    uint64_t match = 0;
    uint64_t sent = 0;
    uint32_t writes = 0;    // that are not over
    bool answered = false;  // its receiver wants no more
  };
  SendId id;
  bool live = false;
  uint64_t channel = 0;
  Ticket ticket = 0;
  const std::byte* data = nullptr;
  uint64_t bytes = 0;
  Code code = Code::ok;
  uint64_t found_bytes = 0;
  uint32_t copies = 0;          // short: that UCX has not sent yet
  bool is_lost = false;         // short: with its peer
  uint32_t writes = 0;          // that are not over
  std::vector<Reader> readers;  // long: that are not done
};

class Outbox final : public SentListener {
 public:
  Outbox(Worker& worker, Connector& connector, Completions& completions);

  Sender& sender() { return sender_; }

  // `peers[i]` is connected and stands for request.to[i]; they are distinct.
  Post send(const SendRequest& request, std::span<Peer* const> peers);

  // False: the peer has sent what makes no sense.
  bool on_grant(Peer& peer, const Tag& tag, const GrantBody& grant);
  bool on_answer(Peer& peer, const AnswerBody& answer);

  // Gives up the sends of the channel. Their memory may still be read as long as is_reading.
  void cancel(uint64_t channel);
  bool is_reading(const Peer& peer, uint64_t channel) const;
  // The peer is closed: nothing more is sent to it.
  void drop(const Peer& peer);
  // Whether a send waits for the peer.
  bool waits_for(const Peer& peer) const;

 private:
  Post send_short(const SendRequest& request, std::span<Peer* const> peers);
  Post send_long(const SendRequest& request, std::span<Peer* const> peers);
  void on_message_sent(void* send, bool ok) override;
  void on_data_sent(void* write, bool ok) override;
  Send& take(const SendRequest& request);
  Send* find(const SendId& id);
  static Send::Reader* reader_of(Send& send, const Peer& peer);
  // Posts pieces as long as few are under way; ends the write when there is nothing left of it.
  void advance(Write& write);
  void post_piece(Write& write);
  void end(Write& write);
  template <class Which>
  void give_up_writes(Which which);
  // Whether anything of the message may still go to the reader.
  void settle(Send& send, Send::Reader& reader);
  void complete(Send& send);
  void retire(Send& send);
  void free_if_over(Send& send);

  Sender sender_;
  Completions& completions_;
  std::deque<Send> sends_;
  std::vector<uint32_t> free_sends_;
  List<Send> live_;
  Pool<Write> write_pool_;
  List<Write> writes_;
};

}  // namespace tutti::internal::ucx
