// The transport between ranks of one node, over shared memory. See docs/memory_model.md and transport/transport.h.
//
// This file only puts the parts together: Region (memory), Connector (peers), Outbox (sending), Receiver (receiving).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/completions.h"
#include "transport/shm/connector.h"
#include "transport/shm/outbox.h"
#include "transport/shm/receiver.h"
#include "transport/shm/region.h"
#include "transport/transport.h"

namespace tutti::internal {

class ShmTransport final : public Transport {
 public:
  struct Options {
    int rank = 0;
    int world_size = 1;
    int numa_node = -1;          // by the system's number, where this rank's memory shall lie; -1: wherever
    bool read_processes = true;  // false: never by process_vm_readv, as where it is forbidden
  };
  static Result<std::unique_ptr<ShmTransport>> create(const Options& options);
  ~ShmTransport() override;

  const char* name() const override { return "shm"; }
  std::string address() const override;
  Status reachable(std::string_view peer_address) const override;
  Status answers(std::string_view peer_address, Deadline deadline) const override;
  Status connect(int peer, std::string_view peer_address, Deadline deadline) override;
  std::vector<Watch> watches() override;
  void serve(uint64_t key) override;
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
  ShmTransport(int world_size, std::unique_ptr<shm::Region> region, const shm::Address& address,
               std::unique_ptr<shm::Connector> connector);

  // Takes what lies in the peer's ring; whether there was something.
  bool drain(shm::Peer& peer);
  bool take(shm::Peer& peer, const shm::Cell& cell);
  // A peer that has said goodbye owes us something that can no longer come.
  void check_left(shm::Peer& peer);
  // Whether a receive from this peer can still be posted.
  bool can_receive(int rank, uint64_t channel, uint64_t match);
  void gone(int rank);
  void flush_idle();

  std::unique_ptr<shm::Region> region_;
  shm::Address address_;
  std::unique_ptr<shm::Connector> connector_;
  Completions completions_;
  shm::Outbox outbox_;
  shm::Receiver receiver_;
  shm::Doorbell doorbell_;
  std::vector<shm::Peer*> peers_;  // room for those of the request that is being posted
  int idle_polls_ = 0;
  std::atomic<bool> busy_{false};  // there is work that no peer will wake us for
};

}  // namespace tutti::internal
