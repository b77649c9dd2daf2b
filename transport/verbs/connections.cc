#include "transport/verbs/connections.h"

#include <utility>

namespace tutti::internal::verbs {

Connections::Connections(Address own, int world_size, std::span<const std::unique_ptr<Queues>> queues,
                         const Settings& settings)
    : own_(std::move(own)),
      queues_(queues),
      settings_(settings),
      attempts_(static_cast<size_t>(world_size)),
      table_(static_cast<size_t>(world_size)),
      active_(static_cast<size_t>(world_size)) {}

Status Connections::begin(const Plan& plan) {
  auto pairs = make_pairs(plan.paths);
  if (!pairs) return pairs.status();
  Attempt& begun = attempt(plan.rank);
  begun.stage = Attempt::Stage::asking;
  begun.nonce = plan.address.nonce;
  begun.paths = plan.paths;
  begun.pairs = std::move(*pairs);
  begun.pause.reset();
  return {};
}

Result<std::vector<std::unique_ptr<QueuePair>>> Connections::make_pairs(std::span<const Path> paths) {
  std::vector<std::unique_ptr<QueuePair>> pairs;
  for (const Path& path : paths) {
    auto pair = QueuePair::create(queues(path.own_port), path.own_port);
    if (!pair) return pair.status();
    pairs.push_back(std::move(*pair));
  }
  return pairs;
}

void Connections::publish(int rank, std::vector<std::unique_ptr<QueuePair>> pairs, PeerState state) {
  peers_.push_back(std::make_unique<Peer>(rank, std::move(pairs), alarm_));
  Peer* const peer = peers_.back().get();
  peer->state.store(state, std::memory_order_relaxed);                 // published below
  const size_t count = active_count_.load(std::memory_order_relaxed);  // written under the mutex only
  active_[count] = peer;
  // pairs with peers() and peer(): release, so that the peer is seen complete.
  active_count_.store(count + 1, std::memory_order_release);
  table_[static_cast<size_t>(rank)].store(peer, std::memory_order_release);
}

void Connections::set_connected(Peer& peer) {
  auto expected = PeerState::accepting;
  peer.state.compare_exchange_strong(expected, PeerState::connected, std::memory_order_relaxed);  // the state alone
}

void Connections::fail(Peer& peer, std::string reason) {
  // relaxed: the failure itself is published by failures_.
  if (peer.state.exchange(PeerState::failed, std::memory_order_relaxed) == PeerState::failed) return;
  peer.close();
  peer.raise_alarm();
  failures_.push(peer.rank, std::move(reason));
  changed_.notify_all();
}

}  // namespace tutti::internal::verbs
