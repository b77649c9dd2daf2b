// The sending half: chooses a form for each message, and keeps what is offered until all readers are done.
//
// Forms, cheapest first: inlined in the cell; staged once for all readers, and then the send is done; offered in place
// (a window, or ordinary memory that the reader can reach), done when all readers have acknowledged; streamed in chunks
// to readers that cannot reach the memory. An offer needs no slot until its reader is ready, so that messages which
// nobody takes yet can never stop others. Owner's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "transport/completions.h"
#include "transport/list.h"
#include "transport/shm/arena.h"
#include "transport/shm/peer.h"

namespace tutti::internal::shm {

class Outbox {
 public:
  Outbox(Region& region, Completions& completions);

  // `peers[i]` is connected and stands for request.to[i]; they are distinct.
  Post send(const SendRequest& request, std::span<Peer* const> peers);

  // False: the peer has sent what makes no sense.
  bool on_ack(Peer& peer, const AckBody& ack);
  bool on_go(Peer& peer, const GoBody& go);
  bool on_release(Peer& peer, uint32_t slot);

  // Moves each stream by a chunk at most; whether anything moved.
  bool advance_streams();
  bool has_streams() const { return !streams_.empty(); }

  // Gives up the sends of the channel: readers will see that what they read of them means nothing.
  void cancel(uint64_t channel);
  // Frees the slots that the peer holds.
  void drop(Peer& peer);
  // Whether the peer has yet to acknowledge something.
  bool waits_for(const Peer& peer) const;

 private:
  struct Reader {
    Peer* peer = nullptr;
    uint64_t match = 0;
    bool streaming = false;
    OperandId to{};
    uint64_t offset = 0;  // streamed so far
  };
  struct Send : Links<Send> {
    SendId id{};
    bool live = false;
    bool streaming = false;  // in streams_
    uint64_t channel = 0;
    Ticket ticket = 0;
    const std::byte* data = nullptr;
    uint64_t bytes = 0;
    Code code = Code::ok;
    uint64_t found_bytes = 0;
    std::vector<Reader> readers;  // that are not done
  };

  Post stage(const SendRequest& request, std::span<Peer* const> peers, uint32_t slot);
  Post offer(const SendRequest& request, std::span<Peer* const> peers);
  Send* take();
  void add_send();
  Send* find(const SendId& id);
  void reader_done(Send& send, size_t reader);
  void retire(Send& send);
  // What the next chunk of a stream is, and who takes it: readers that stand at the same place share it.
  bool advance(Send& send);

  Region& region_;
  Completions& completions_;
  Arena arena_;
  std::deque<Send> sends_;
  std::vector<uint32_t> free_sends_;
  List<Send> streams_;
};

}  // namespace tutti::internal::shm
