// The receiving half: brings messages and requests together, tells senders of long messages where to write, and
// reduces.
//
// A long message that is received into memory which can be registered is granted whole, at once, and written in place.
// What is to be reduced, or goes to other memory, is granted in parts to staging memory, some at a time: one part is
// reduced while the next ones arrive. Staging memory is given out unasked only as long as half of it is free; the rest
// is for messages whose senders have said that they are there, so that senders who do not come cannot hold up others.
//
// Owner's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_set>
#include <vector>

#include "transport/completions.h"
#include "transport/list.h"
#include "transport/transport.h"
#include "transport/verbs/inbox.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/registrar.h"
#include "transport/verbs/staging.h"

namespace tutti::internal::verbs {

class Receiver {
 public:
  Receiver(Registrar& registrar, Staging& staging, Completions& completions,
           const std::unordered_set<uint64_t>& cancelled);

  // `peers[i]` stands for operand i, null for local memory.
  Post receive(const RecvRequest& request, Peer& peer);
  Post reduce(const ReduceRequest& request, std::span<Peer* const> peers);

  void on_message(Peer& peer, const Header& header, std::span<const std::byte> data);
  void on_offer(Peer& peer, const Header& header, const OfferBody& offer);
  void on_immediate(Peer& peer, uint32_t word);
  void on_withdrawn(Peer& peer, const GrantName& name);

  // Grants more where there is staging memory; whether anything moved.
  bool advance();
  bool has_work() const { return !hungry_.empty(); }

  bool has_heard(const Peer& peer, uint64_t channel, uint64_t first, uint64_t count) const;
  bool waits_for(const Peer& peer) const { return !peer.inbox.posted.empty(); }

  // Gives up the receives of the channel. A peer may still write into their memory as long as it owes an answer: until
  // it has said that it will not. `peers`: all.
  void cancel(uint64_t channel, std::span<Peer* const> peers);
  bool owes_answer(const Peer& peer, uint64_t channel) const;
  void forget(uint64_t channel, std::span<Peer* const> peers);
  // The peer is closed: it writes no more.
  void drop(const Peer& peer);

  // How many bytes came straight into the receiver's memory, and through staging memory.
  uint64_t direct_bytes() const { return direct_bytes_; }
  uint64_t staged_bytes() const { return staged_bytes_; }

 private:
  // A place in our memory that a peer was told of.
  struct Granted {
    bool live = false;
    uint32_t generation = 0;
    uint32_t arrivals = 0;
    Peer* peer = nullptr;
    Request* request = nullptr;  // null: given up
    int operand = 0;
    int part = -1;                         // of the request, in staging memory; -1: in place
    int chunk = -1;                        // the staging memory
    const Registration* target = nullptr;  // in place: the memory's
    uint64_t channel = 0;
    uint64_t bytes = 0;
  };

  Request& acquire(size_t operand_count);
  void add_request(size_t capacity);
  void release(Request& request);
  // The message of one operand of a request that is being posted: there already, or waited for.
  void expect(Request& request, Operand& operand, Peer& peer, uint64_t match);
  Post begin(Request& request);

  void take_message(Operand& operand, std::span<const std::byte> data);
  static void reduce_short(Request& request);

  void take_offer(Operand& operand, uint64_t bytes, const SendId& id);
  bool grant_in_place(Request& request);
  bool feed(Request& request);
  bool may_stage(const Request& request);
  void grant_part(Request& request, int index);
  void grant(Operand& operand, const Granted& what, uint64_t offset, void* memory, const Registration& registration);
  Granted* find_granted(const Peer& peer, uint32_t word);
  void end(Granted& granted);
  void use_part(Request& request, Part& part);
  void give_chunks(Part& part);

  void fail_length(Operand& operand, uint64_t found_bytes);
  void complete(Request& request, Code code, size_t found_bytes);
  static void unpost(Operand& operand);
  void leave_lists(Request& request);
  // Takes a request back before its time; what was granted for it is given up.
  void drop(Request& request);
  void drop_unexpected(Peer& peer, uint64_t channel, bool answer);

  Registrar& registrar_;
  Staging& staging_;
  Completions& completions_;
  const std::unordered_set<uint64_t>& cancelled_;
  std::deque<Request> requests_;
  std::vector<Request*> free_small_, free_large_;  // with room for few operands, and for the most
  List<Request> hungry_;
  Pool<Unexpected> unexpected_;
  std::vector<Granted> granted_;
  std::vector<uint32_t> free_granted_;
  uint64_t direct_bytes_ = 0;
  uint64_t staged_bytes_ = 0;
};

}  // namespace tutti::internal::verbs
