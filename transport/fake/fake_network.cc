// The handles on a fake network: FakeNetwork for the test, FakeTransport for each rank. Any thread.
#include "transport/fake/fake_network.h"

#include <string>
#include <utility>

#include "transport/fake/network.h"

namespace tutti::internal {
namespace {

class FakeTransport final : public Transport {
 public:
  FakeTransport(std::shared_ptr<fake::Network> network, int rank) : network_(std::move(network)), rank_(rank) {
    network_->open(rank_);
  }
  ~FakeTransport() override { network_->close(rank_); }

  const char* name() const override { return "fake"; }
  std::string address() const override { return network_->address(rank_); }
  Status reachable(std::string_view peer_address) const override { return network_->find(peer_address).status(); }
  Status answers(std::string_view peer_address, Deadline) const override { return reachable(peer_address); }
  Status connect(int peer, std::string_view peer_address, Deadline deadline) override {
    return network_->connect(rank_, peer, peer_address, deadline);
  }
  std::vector<Watch> watches() override { return {{network_->watch_fd(rank_), 0}}; }
  void serve(uint64_t) override {}  // take_failure follows

  Result<void*> allocate(size_t bytes) override { return network_->allocate(rank_, bytes); }
  Status release(void* memory) override { return network_->release(rank_, memory); }
  Status register_memory(void* memory, size_t bytes) override {
    return network_->register_memory(rank_, memory, bytes);
  }
  Status unregister_memory(void* memory) override { return network_->unregister_memory(rank_, memory); }

  Post post_send(const SendRequest& request) override { return network_->send(rank_, request); }
  Post post_recv(const RecvRequest& request) override { return network_->receive(rank_, request); }
  Post post_reduce(const ReduceRequest& request) override { return network_->reduce(rank_, request); }
  size_t poll(std::span<Completion> completions) override { return network_->poll(rank_, completions); }
  void cancel(uint64_t channel) override { network_->cancel(rank_, channel); }
  void forget(uint64_t channel) override { network_->forget(rank_, channel); }
  void disconnect(int peer) override { network_->disconnect(rank_, peer); }
  PeerFailure take_failure() override { return network_->take_failure(rank_); }
  void idle(Deadline deadline) override { network_->idle(rank_, deadline); }

 private:
  std::shared_ptr<fake::Network> network_;
  const int rank_;
};

}  // namespace

FakeNetwork::FakeNetwork(int ranks, uint64_t seed, const FakeOptions& options)
    : network_(std::make_shared<fake::Network>(ranks, seed, options)) {}
FakeNetwork::~FakeNetwork() = default;

std::unique_ptr<Transport> FakeNetwork::make(int rank) { return std::make_unique<FakeTransport>(network_, rank); }
void FakeNetwork::die(int rank) { network_->die(rank); }
void FakeNetwork::die_at_post(int rank, uint64_t post) { network_->die_at_post(rank, post); }
bool FakeNetwork::is_dead(int rank) const { return network_->is_gone(rank); }
uint64_t FakeNetwork::post_count(int rank) const { return network_->post_count(rank); }

}  // namespace tutti::internal
