// The receiving half for long messages: tells their senders where to write, and reduces.
//
// A long message that is received into memory which can be registered is granted whole, at once, and written in place.
// What is to be reduced, or goes to other memory, is granted in parts to staging memory, some at a time: one part is
// reduced while the next ones arrive. Staging memory is given out unasked only as long as half of it is free; the rest
// is for messages whose senders have said that they are there, so that senders who do not come cannot hold up others.
//
// Owner's thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "transport/completions.h"
#include "transport/list.h"
#include "transport/receives.h"
#include "transport/transport.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/registrar.h"
#include "transport/verbs/staging.h"

namespace tutti::internal::verbs {

class Receiver final : public Receives {
 public:
  Receiver(Registrar& registrar, Staging& staging, Completions& completions,
           const std::unordered_set<uint64_t>& cancelled);

  void on_immediate(Peer& peer, uint32_t word);
  void on_withdrawn(Peer& peer, const GrantName& name);

  // Grants more where there is staging memory; whether anything moved.
  bool advance();
  bool has_work() const { return !hungry_.empty(); }

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

  void move(Request& request) override;
  void answer(Correspondent& from, const Tag& tag, const SendId& id, Code code, uint64_t wanted_bytes) override;
  void give_up(Request& request) override;

  bool grant_in_place(Request& request);
  bool feed(Request& request);
  bool may_stage(const Request& request);
  void grant_part(Request& request, int index);
  void grant(Operand& operand, const Granted& what, uint64_t offset, void* memory, const Registration& registration);
  Granted* find_granted(const Peer& peer, uint32_t word);
  void end(Granted& granted);
  void use_part(Request& request, Part& part);
  void give_chunks(Part& part);

  Registrar& registrar_;
  Staging& staging_;
  List<Request> hungry_;  // want staging memory
  std::vector<Granted> granted_;
  std::vector<uint32_t> free_granted_;
  uint64_t direct_bytes_ = 0;
  uint64_t staged_bytes_ = 0;
};

}  // namespace tutti::internal::verbs
