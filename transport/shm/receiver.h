// The receiving half: brings messages and requests together, and moves or reduces the bytes.
//
// A request waits until all its messages are there and then makes one pass over them: from cells, slots and windows in
// place, from ordinary memory of a peer in chunks through a scratch buffer. A long pass is done in pieces, one a poll.
// Owner's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "transport/completions.h"
#include "transport/list.h"
#include "transport/shm/connector.h"
#include "transport/shm/inbox.h"
#include "transport/shm/peer.h"

namespace tutti::internal::shm {

class Receiver {
 public:
  Receiver(Connector& connector, Completions& completions);

  // `peers[i]` stands for operand i, null for local memory.
  Post receive(const RecvRequest& request, Peer& peer);
  Post reduce(const ReduceRequest& request, std::span<Peer* const> peers);

  // A message came: the cell that peer.in() has come to. False: it makes no sense.
  bool on_message(Peer& peer, const Cell& cell);
  bool on_chunk(Peer& peer, const ChunkBody& chunk);

  // Does a piece of the oldest long request; whether there was one.
  bool advance_work();
  bool has_work() const { return !working_.empty(); }

  bool has_heard(const Peer& peer, uint64_t channel, uint64_t first, uint64_t count) const;

  void cancel(uint64_t channel);
  void forget(uint64_t channel) { cancelled_.erase(channel); }

 private:
  enum class Progress : uint8_t { more, finished, stopped };

  Request& acquire(int operand_count);
  void add_request(int capacity);
  void release(Request& request);
  // The message of one operand of a request that is being posted: there already, or waited for.
  void expect(Request& request, Operand& operand, Peer& peer, uint64_t match);
  // All operands are in place. What post_* answers.
  Post begin(Request& request);

  // The operand's message is there. False: the lengths differ, and the request is over.
  bool join(Operand& operand);
  void on_all_arrived(Request& request);
  void fail_lengths(Operand& operand, uint64_t found_bytes);

  // One piece of the pass over all operands.
  Progress advance(Request& request);
  Progress advance_receive(Request& request, size_t bytes);
  Progress advance_reduce(Request& request, size_t bytes);
  Progress reduce_range(Request& request, size_t offset, size_t bytes, bool read);
  // The kernel refused to read: the peer is gone, or must stream instead.
  Progress on_read_error(Operand& operand, int error);
  void apply_chunk(Request& request, const Operand& operand, size_t offset, const std::byte* data, size_t bytes);
  // Tells every sender; the code of the request.
  Code settle(Request& request);
  void complete(Request& request, Code code, size_t found_bytes);

  // The reader is done with a message.
  void done_with(Peer& peer, const Message& message, Code code, uint64_t found_bytes);
  void drop(Request& request);
  void leave_lists(Request& request);

  Connector& connector_;
  Completions& completions_;
  std::deque<Request> requests_;
  std::vector<Request*> free_small_;
  std::vector<Request*> free_large_;
  List<Request> working_;
  Pool<Unexpected> unexpected_;
  std::unordered_set<uint64_t> cancelled_;
  std::unique_ptr<std::byte[]> scratch_;  // kMaxOperands chunks, touched as needed
};

}  // namespace tutti::internal::shm
