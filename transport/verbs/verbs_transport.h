// The transport between ranks over reliable connections of libibverbs. See transport/transport.h, and wire.h for what
// travels.
//
// This file only puts the parts together: ports and their queues (devices), registrar and windows (memory), Connector
// (peers), Outbox (sending), Receiver (receiving).
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "transport/completions.h"
#include "transport/transport.h"
#include "transport/verbs/connector.h"
#include "transport/verbs/domain.h"
#include "transport/verbs/outbox.h"
#include "transport/verbs/pinger.h"
#include "transport/verbs/port.h"
#include "transport/verbs/queues.h"
#include "transport/verbs/receiver.h"
#include "transport/verbs/registrar.h"
#include "transport/verbs/routes.h"
#include "transport/verbs/settings.h"
#include "transport/verbs/staging.h"
#include "transport/windows.h"

namespace tutti::internal {

class VerbsTransport final : public Transport {
 public:
  struct Options {
    int rank = 0;
    int world_size = 1;
    int numa_node = -1;                  // by the system's number, where this rank's memory shall lie; -1: wherever
    std::vector<std::string> preferred;  // devices, the nearest first
    verbs::Settings settings;
    verbs::RegistrarOptions registrar;
  };
  // `mail` outlives the transport. Errors: unsupported (no usable device, with the reason for each), invalid_argument
  // (a setting that names no device), out_of_resources (what is missing, and how much of it is needed).
  static Result<std::unique_ptr<VerbsTransport>> create(const Options& options, Mail& mail);
  ~VerbsTransport() override;

  std::vector<std::string> devices() const;

  const char* name() const override { return "verbs"; }
  std::string address() const override;
  Status reachable(std::string_view peer_address) const override;
  Status answers(std::string_view peer_address, Deadline deadline) const override;
  std::unique_ptr<Prober> take_prober() override { return std::move(pinger_); }
  Status connect(int peer, std::string_view peer_address, Deadline deadline) override;
  std::vector<Watch> watches() override;
  void serve(uint64_t key) override;
  void deliver(int peer, std::string_view letter) override;
  void gets_no_letters(int peer) override;
  Result<void*> allocate(size_t bytes) override;
  Status release(void* memory) override;
  Status register_memory(void* memory, size_t bytes) override;
  Status unregister_memory(void* memory) override;
  Post post_send(const SendRequest& request) override;
  Post post_recv(const RecvRequest& request) override;
  Post post_reduce(const ReduceRequest& request) override;
  size_t poll(std::span<Completion> completions) override;
  void cancel(uint64_t channel) override;
  void forget(uint64_t channel) override;
  void disconnect(int peer) override;
  PeerFailure take_failure() override;
  bool waits_for(int peer) const override;
  bool has_heard(int peer, uint64_t channel, uint64_t first, uint64_t count) const override;
  void idle(Deadline deadline) override;

  // What has moved so far, for tests and benchmarks: in bytes.
  struct Moved {
    uint64_t written_in_place = 0;   // from where the sender had it
    uint64_t written_copied = 0;     // from staging memory of the sender's
    uint64_t received_in_place = 0;  // to where the receiver wants it
    uint64_t received_staged = 0;    // through staging memory of the receiver's
  };
  Moved moved() const;

 private:
  using Ports = std::vector<std::unique_ptr<verbs::Port>>;
  using AllQueues = std::vector<std::unique_ptr<verbs::Queues>>;
  // Whether somebody wants to sleep until a completion comes, and whether one would wake him.
  enum class Wake : uint8_t { unwanted, wanted, armed };

  VerbsTransport(const Options& options, Ports ports, AllQueues queues, verbs::Address address, Mail& mail,
                 std::unique_ptr<verbs::Listeners> listeners, std::unique_ptr<verbs::Pinger> pinger);

  // Takes what the devices have to tell, and moves what can move; whether anything did.
  bool progress();
  bool drain(size_t port);
  void on_completion(size_t port, const ibv_wc& work);
  void on_error(size_t port, const verbs::Route& route, const ibv_wc& work);
  void on_receive(const verbs::Route& route, const ibv_wc& work);
  // False: it makes no sense.
  bool dispatch(verbs::Peer& peer, const verbs::Header& header, std::span<const std::byte> data);
  // What peers need now and then. `drained`: the devices had nothing more to tell.
  void tend_all(bool drained);
  // Now and then, of peers that something is expected from: who has acknowledged all that we sent may be gone since.
  void check_awaited();
  // Whether it must be looked at again.
  bool tend(verbs::Peer& peer, bool drained);
  const verbs::Route* find_route(size_t port, uint32_t pair_number);
  // Of the peers that were connected since the last time.
  [[gnu::cold]] void learn_routes();
  // What is left to do for a peer that has failed.
  void bury(verbs::Peer& peer);
  void give_up_on(verbs::Peer& peer);
  void gone(int rank, const verbs::Peer* peer);
  bool can_receive(int rank, uint64_t channel, uint64_t match);

  const Ports ports_;
  const AllQueues queues_;
  std::unique_ptr<verbs::Pinger> pinger_;  // until it is taken
  verbs::PortsDomain domain_;
  verbs::Registrar registrar_;
  Windows windows_;
  verbs::Staging staging_;
  Completions completions_;
  std::unordered_set<uint64_t> cancelled_;
  verbs::Outbox outbox_;
  verbs::Receiver receiver_;
  verbs::Connector connector_;  // last: its queue pairs go before what they use
  size_t known_peers_ = 0;
  int64_t checked_us_ = 0;                 // when peers were checked
  std::vector<verbs::Routes> routes_;      // by port
  std::vector<verbs::Peer*> posting_;      // room for those of the request that is being posted
  std::vector<Correspondent*> expecting_;  // likewise
  std::atomic<Wake> wake_{Wake::unwanted};
};

}  // namespace tutti::internal
