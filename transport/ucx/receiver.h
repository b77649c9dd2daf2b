// The receiving half for long messages. When a message is offered that a receive waits for, all of it is granted, and
// UCX puts its pieces in place, or we do. So is the one message of a reduction, and its pieces are combined as they
// come. What is to be reduced of several is granted in parts to staging memory, when all of its messages are offered:
// what is granted comes, so staging memory is always given back.
//
// Owner's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_set>
#include <vector>

#include "transport/receives.h"
#include "transport/staging.h"
#include "transport/ucx/sender.h"
#include "transport/ucx/wire.h"

namespace tutti::internal::ucx {

// A piece of data as UCX hands it in: its bytes, or (is_rendezvous) a name by which they can be had.
struct Piece {
  void* data = nullptr;
  size_t bytes = 0;
  bool is_rendezvous = false;
};

class Receiver final : public Receives {
 public:
  Receiver(Worker& worker, Sender& sender, Completions& completions, const std::unordered_set<uint64_t>& cancelled);

  // What UCX is to be told of the piece; `makes_sense` false: the peer has sent what it may not.
  ucs_status_t on_data(Peer& peer, const DataBody& body, const Piece& piece, bool& makes_sense);
  void on_withdrawn(const Peer& peer, const WithdrawnBody& withdrawn);

  // Grants more where there is staging memory; whether anything moved.
  bool advance();

  // Gives up the receives of the channel. UCX may still write into their memory as long as is_writing.
  void cancel(uint64_t channel, std::span<Peer* const> peers);
  bool is_writing(const Peer& peer, uint64_t channel) const;
  void forget(uint64_t channel, std::span<Peer* const> peers);
  // The peer is closed: nothing more comes from it.
  void drop(const Peer& peer);

 private:
  // A place in our memory that a peer was told of.
  struct Granted {
    Receiver* receiver = nullptr;
    bool live = false;
    bool withdrawn = false;  // the sender has given up
    uint32_t index = 0;
    uint32_t generation = 0;
    uint32_t receiving = 0;  // pieces that UCX is writing
    Peer* peer = nullptr;
    Request* request = nullptr;  // null: given up
    int operand = 0;
    int part = -1;   // of the request, in staging memory; -1: in place
    int chunk = -1;  // the staging memory
    std::byte* memory = nullptr;
    bool whole_pieces = false;  // UCX hands them in, and none by rendezvous
    uint64_t channel = 0;
    uint64_t bytes = 0;
    uint64_t arrived = 0;
  };

  void move(Request& request) override;
  void answer(Correspondent& from, const Tag& tag, const SendId& id, Code code, uint64_t wanted_bytes) override;
  void give_up(Request& request) override;

  bool feed(Request& request);
  void wait_for_chunks(Request& request, bool wants_more);
  void grant_part(Request& request, int index);
  void grant(Operand& operand, Granted what, uint64_t offset);
  Granted* find(const Peer& peer, const GrantId& id);
  ucs_status_t fetch(Granted& granted, std::byte* to, const Piece& piece);
  static void on_fetched(void* request, ucs_status_t status, size_t bytes, void* granted);
  // Whether anything more has to come or to be waited for.
  void settle(Granted& granted);
  // False: it is not of whole elements.
  static bool combine(Request& request, uint64_t offset, const Piece& piece);
  void use_part(Request& request, Part& part);
  void end(Granted& granted);

  Worker& worker_;
  Sender& sender_;
  Staging staging_;
  std::deque<Granted> granted_;
  std::vector<uint32_t> free_granted_;
  List<Request> hungry_;  // want staging memory
};

}  // namespace tutti::internal::ucx
