// The transport between ranks over whatever UCX finds. See transport/transport.h, and wire.h for what travels.
//
// This file only puts the parts together: Worker (UCX's context and memory), Connector (peers), Outbox (sending),
// Receiver (receiving). UCX is called by the owner alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "transport/completions.h"
#include "transport/transport.h"
#include "transport/ucx/configuration.h"
#include "transport/ucx/connector.h"
#include "transport/ucx/outbox.h"
#include "transport/ucx/receiver.h"
#include "transport/ucx/worker.h"
#include "transport/windows.h"

namespace tutti::internal {

class UcxTransport final : public Transport {
 public:
  struct Options {
    int rank = 0;
    int world_size = 1;
    int numa_node = -1;  // by the system's number, where this rank's memory shall lie; -1: wherever
    std::vector<std::string> interfaces = {};  // network interfaces for IP, unless UCX_NET_DEVICES is set; none: all
    ucx::Settings settings = {};               // of UCX, whatever the environment says
  };
  // `mail` outlives the transport. Errors: unsupported (UCX is not there, or finds nothing that it can use),
  // invalid_argument, out_of_resources.
  static Result<std::unique_ptr<UcxTransport>> create(const Options& options, Mail& mail);
  ~UcxTransport() override;

  const char* name() const override { return "ucx"; }
  std::string address() const override;
  Status reachable(std::string_view peer_address) const override;
  Status answers(std::string_view peer_address, Deadline deadline) const override;
  Status connect(int peer, std::string_view peer_address, Deadline deadline) override;
  std::vector<Watch> watches() override { return {{connector_.failures().wake_fd(), 0}}; }
  void serve(uint64_t) override {}  // take_failure follows
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

 private:
  // Whether somebody wants to sleep until something comes, and whether it would wake him.
  enum class Wake : uint8_t { unwanted, wanted, armed };

  UcxTransport(const Options& options, std::unique_ptr<ucx::Worker> worker, Mail& mail);
  Status listen();

  // Moves what can move; whether anything did.
  bool progress();
  static ucs_status_t on_active_message(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                                        const ucp_am_recv_param_t* param);
  ucs_status_t on_frame(const ucx::Header& header, std::span<const std::byte> body, const ucx::Piece& piece);
  // Who has sent it; null: nobody whom this transport knows.
  ucx::Peer* sender_of(const ucx::Header& header) const;
  // False: it makes no sense.
  bool dispatch(ucx::Peer& peer, const ucx::Header& header, std::span<const std::byte> body);
  // What a peer needs at every poll.
  void tend(ucx::Peer& peer);
  void bury(ucx::Peer& peer);
  // Of a peer that others say is gone, whether what is wanted of it will not come.
  bool is_waited_for_in_vain(ucx::Peer& peer);
  // Whether requests with the peer can be posted; if not because it has left, it has failed from now on.
  bool can_send(int rank);
  bool can_receive(int rank, uint64_t channel, uint64_t match);
  void give_up_on(uint64_t channel);
  bool is_busy(uint64_t channel) const;
  void say_goodbye();

  std::unique_ptr<ucx::Worker> worker_;
  Completions completions_;
  std::unordered_set<uint64_t> cancelled_;
  ucx::Connector connector_;
  ucx::Outbox outbox_;
  ucx::Receiver receiver_;
  Windows windows_;
  std::vector<ucx::Peer*> posting_;        // room for those of the request that is being posted
  std::vector<Correspondent*> expecting_;  // likewise
  std::atomic<Wake> wake_{Wake::unwanted};
};

}  // namespace tutti::internal
