// Connects by librdmacm: one id for each path, beside the queue pair that is its own.
//
// The asking rank resolves each path's address and route and sends a request. The other checks it, makes and connects
// its queue pair, and accepts. When all paths are accepted, the first connects its queue pairs and says so
// (rdma_establish); when that has come for all, the other may send, too. The ids stay: their end tells that the peer is
// gone.
//
// Queue pairs are not librdmacm's: they belong to the transport's own device context, and rdma_cm is given their
// numbers.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "transport/verbs/cm_channel.h"
#include "transport/verbs/cm_message.h"
#include "transport/verbs/connections.h"
#include "transport/verbs/listeners.h"
#include "transport/verbs/wiring.h"

namespace tutti::internal::verbs {

class Cm final : public Wiring {
 public:
  // `connections` outlives it.
  Cm(Connections& connections, std::unique_ptr<Listeners> listeners);

  Status ask(const Plan& plan, std::unique_lock<std::mutex>& lock) override;
  int fd() const { return listeners_->channel().fd(); }
  // All events that there are. On the watch thread.
  void serve();

 private:
  // One path to a peer. `done`: asking, it is accepted; answering, the other is ready.
  struct Line {
    CmId id;
    bool done = false;
  };
  // All to one rank, of one attempt.
  struct Wire {
    uint32_t generation = 0;
    uint32_t asked_as = 0;  // answering: the other's number of its attempt
    bool is_ours = false;   // this rank asks
    Deadline deadline = Deadline::never();
    std::vector<Listener> to = {};  // by path, asking
    std::vector<Line> lines = {};   // by path
  };

  // All below: with the mutex held.
  void handle(CmEvent& event);
  void on_address(const CmName& name, Line& line);
  void on_route(const CmName& name, Line& line);
  void on_answer(const CmName& name, Line& line, const CmEvent& event);
  void on_request(CmEvent& event);
  void on_established(const CmName& name, Line& line);
  void on_disconnected(const CmName& name, Line& line);
  void on_rejected(const CmName& name, const CmEvent& event);
  void on_trouble(const CmName& name, const CmEvent& event);
  void on_removal(const CmName& name);

  Result<CmId> start(const CmName& name, const Plan& plan, const Path& path) const;
  // Whether it may be answered; else why not.
  CmRejection check(const CmRequest& request, int port, const rdma_cm_id& id) const;
  Status accept(const CmName& name, const CmRequest& request, int port, CmId& id);
  Status connect_pair(rdma_cm_id& id, QueuePair& pair, uint8_t mtu, uint32_t credits) const;
  Wire& wire(int rank) { return wires_[static_cast<size_t>(rank)]; }
  Wire& renew(int rank);
  Line* find(const CmName& name);
  // "mlx5_0:1: rdma_cm to rank 3 at 10.0.0.1 port 4791"
  std::string describe(const CmName& name);
  // What is under way, or was connected, with this rank is over.
  void give_up(int rank, const Status& why);
  void try_again(int rank, const std::string& why, int64_t pause_us);

  Connections& connections_;
  const std::unique_ptr<Listeners> listeners_;
  std::vector<Wire> wires_;  // by rank; after the channel
};

}  // namespace tutti::internal::verbs
