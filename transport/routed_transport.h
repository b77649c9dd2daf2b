// Several transports as one, of which each leads to some of the peers: shared memory inside the node, a network between
// nodes. See transport.h for the contract; way_to(peer) is the number of the transport that leads there, and the peers
// of one request stand on one way.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace tutti::internal {

class RoutedTransport final : public Transport {
 public:
  // way_of[rank]: index of the one that leads to the rank; whatever for this rank itself. Windows are the first one's,
  // and registered with the others.
  RoutedTransport(std::vector<std::unique_ptr<Transport>> transports, std::vector<int> way_of);

  // "shm+verbs".
  const char* name() const override { return name_.c_str(); }
  // The parts publish theirs, and find out who can be reached by which, before they are put together.
  std::string address() const override { return {}; }
  Status reachable(std::string_view) const override { return {}; }
  Status answers(std::string_view, Deadline) const override { return {}; }
  // The address is the peer's for the transport that leads to it.
  Status connect(int peer, std::string_view peer_address, Deadline deadline) override;
  int way_to(int peer) const override { return way_of_[static_cast<size_t>(peer)]; }
  std::vector<Watch> watches() override;
  void serve(uint64_t key) override;
  void deliver(int peer, std::string_view letter) override { to(peer).deliver(peer, letter); }
  void gets_no_letters(int peer) override { to(peer).gets_no_letters(peer); }
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
  void disconnect(int peer) override { to(peer).disconnect(peer); }
  PeerFailure take_failure() override;
  bool waits_for(int peer) const override { return to(peer).waits_for(peer); }
  bool has_heard(int peer, uint64_t channel, uint64_t first, uint64_t count) const override {
    return to(peer).has_heard(peer, channel, first, count);
  }
  void idle(Deadline deadline) override;

 private:
  struct Part {
    std::unique_ptr<Transport> transport;
    // Requests that have not completed: a hint for how often to look, and for where to sleep. Written by the owner.
    std::atomic<int64_t> pending{0};
  };
  Transport& to(int peer) const { return *parts_[static_cast<size_t>(way_to(peer))].transport; }
  Post posted(int peer, Post post);

  std::vector<Part> parts_;
  std::vector<int> way_of_;
  std::string name_;
  uint64_t looks_ = 0;
  std::atomic<uint64_t> naps_{0};
};

}  // namespace tutti::internal
