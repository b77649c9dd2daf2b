#include "transport/shm/shm_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/shm/message.h"
#include "transport/shm/tuning.h"

namespace tutti::internal {

using shm::Cell;
using shm::CellKind;
using shm::Peer;
using shm::PeerState;

Result<std::unique_ptr<ShmTransport>> ShmTransport::create(const Options& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size)
    return Status(Code::invalid_argument, fmt::format("rank {} of {}", options.rank, options.world_size));
  auto region = shm::Region::create(options.rank, options.world_size, options.numa_node);
  if (!region) return region.status();
  const shm::Address address = shm::own_address(options.rank, (*region)->nonce());
  auto connector = shm::Connector::create(**region, address,
                                          {.world_size = options.world_size, .read_processes = options.read_processes});
  if (!connector) return connector.status();
  return std::unique_ptr<ShmTransport>(
      new ShmTransport(options.world_size, std::move(*region), address, std::move(*connector)));
}

ShmTransport::ShmTransport(int world_size, std::unique_ptr<shm::Region> region, const shm::Address& address,
                           std::unique_ptr<shm::Connector> connector)
    : region_(std::move(region)),
      address_(address),
      connector_(std::move(connector)),
      outbox_(*region_, completions_),
      receiver_(*connector_, completions_),
      doorbell_(region_->at<uint32_t>(region_->layout().doorbell_offset())),
      peers_(static_cast<size_t>(std::max(world_size, kMaxOperands))) {}

// The goodbye in the ring comes after all messages, and is seen by the next poll; the one that the connector sends
// explains the closed connection, and stands in where the ring is full.
ShmTransport::~ShmTransport() {
  for (size_t i = 0; i < connector_->active_count(); ++i) {
    Peer& peer = connector_->active(i);
    if (peer.state.load(std::memory_order_relaxed) != PeerState::connected) continue;  // the state alone matters
    if (peer.has_unsent()) peer.flush();
    if (peer.has_room()) peer.write(CellKind::goodbye, 0, 0, 0, nullptr, 0);
  }
}

std::string ShmTransport::address() const { return address_.encode(); }

Status ShmTransport::reachable(std::string_view peer_address) const {
  auto peer = shm::Address::decode(peer_address);
  return peer ? shm::same_node(address_, *peer) : peer.status();
}

Status ShmTransport::answers(std::string_view peer_address, Deadline deadline) const {
  auto peer = shm::Address::decode(peer_address);
  if (!peer) return peer.status();
  return shm::connect_abstract(shm::name_of(*peer), deadline).status();
}

Status ShmTransport::connect(int peer, std::string_view peer_address, Deadline deadline) {
  return connector_->connect(peer, peer_address, deadline);
}

std::vector<Watch> ShmTransport::watches() {
  return {{connector_->watch_fd(), 0}, {connector_->failures().wake_fd(), 1}};
}
void ShmTransport::serve(uint64_t key) {
  if (key == 0) connector_->serve();  // of the other, take_failure follows
}

Result<void*> ShmTransport::allocate(size_t bytes) { return region_->allocate(bytes); }
Status ShmTransport::release(void* memory) { return region_->release(memory); }

// Memory of the user's cannot be mapped by peers: it is read by the kernel or streamed, registered or not.
Status ShmTransport::register_memory(void*, size_t) { return {}; }
Status ShmTransport::unregister_memory(void*) { return {}; }

void ShmTransport::gone(int rank) {
  if (Peer* const peer = connector_->peer(rank)) connector_->fail(*peer, "it has left the world");
}

Post ShmTransport::post_send(const SendRequest& request) {
  size_t count = 0;
  for (const Endpoint& to : request.to) {
    Peer* const peer = connector_->peer(to.peer);
    // relaxed: only the state itself matters here.
    if (peer == nullptr || peer->state.load(std::memory_order_relaxed) != PeerState::connected) {
      gone(to.peer);
      return Post::failed;
    }
    peers_[count++] = peer;
  }
  return outbox_.send(request, {peers_.data(), count});
}

bool ShmTransport::can_receive(int rank, uint64_t channel, uint64_t match) {
  Peer* const peer = connector_->peer(rank);
  if (peer == nullptr) return false;
  // pairs with Connector::handle_packet (goodbye): acquire, so that the peer's last cells are seen below.
  if (peer->state.load(std::memory_order_acquire) == PeerState::connected) return true;
  // What it sent before it went may still be taken.
  drain(*peer);
  if (peer->inbox.find_unexpected(channel, match) != nullptr) return true;
  gone(rank);
  return false;
}

Post ShmTransport::post_recv(const RecvRequest& request) {
  if (!can_receive(request.from.peer, request.channel, request.from.match)) return Post::failed;
  return receiver_.receive(request, *connector_->peer(request.from.peer));
}

Post ShmTransport::post_reduce(const ReduceRequest& request) {
  size_t count = 0;
  for (const ReduceOperand& operand : request.operands) {
    if (operand.from.peer >= 0 && !can_receive(operand.from.peer, request.channel, operand.from.match))
      return Post::failed;
    peers_[count++] = operand.from.peer >= 0 ? connector_->peer(operand.from.peer) : nullptr;
  }
  return receiver_.reduce(request, {peers_.data(), count});
}

bool ShmTransport::take(Peer& peer, const Cell& cell) {
  if (cell.released != 0 && !outbox_.on_release(peer, cell.released - 1u)) return false;
  if (is_message(cell.kind)) return receiver_.on_message(peer, cell);
  switch (cell.kind) {
    case CellKind::chunk: return receiver_.on_chunk(peer, shm::body<shm::ChunkBody>(cell));
    case CellKind::go: return outbox_.on_go(peer, shm::body<shm::GoBody>(cell));
    case CellKind::ack: return outbox_.on_ack(peer, shm::body<shm::AckBody>(cell));
    case CellKind::release: {
      const auto slots = shm::body<std::array<uint16_t, shm::kReleasesPerCell>>(cell);
      for (size_t i = 0; i < std::min<size_t>(cell.length, slots.size()); ++i)
        if (!outbox_.on_release(peer, slots[i])) return false;
      return true;
    }
    case CellKind::goodbye: {
      auto expected = PeerState::connected;
      peer.state.compare_exchange_strong(expected, PeerState::left, std::memory_order_relaxed);  // ours to read
      return true;
    }
    default: return false;
  }
}

bool ShmTransport::drain(Peer& peer) {
  bool found = false;
  // A ring at most, so that one busy peer does not keep us from the others.
  for (uint32_t i = 0; i < shm::kRingCells; ++i) {
    const Cell* const cell = peer.in().peek();
    if (cell == nullptr) break;
    found = true;
    if (!take(peer, *cell)) {
      connector_->fail(peer,
                       fmt::format("it sent a cell of kind {} that makes no sense", static_cast<int>(cell->kind)));
      break;
    }
    peer.in().pop(cell->kind == CellKind::inlined ? shm::lines_of(cell->length) : 0);
  }
  return found;
}

bool ShmTransport::waits_for(int rank) const {
  const Peer* const peer = connector_->peer(rank);
  return peer != nullptr && (!peer->inbox.posted.empty() || outbox_.waits_for(*peer));
}

bool ShmTransport::has_heard(int rank, uint64_t channel, uint64_t first, uint64_t count) const {
  const Peer* const peer = connector_->peer(rank);
  return peer != nullptr && receiver_.has_heard(*peer, channel, first, count);
}

void ShmTransport::check_left(Peer& peer) {
  if (!waits_for(peer.rank)) return;
  connector_->fail(peer, "it has left the world in the middle of an operation");
}

void ShmTransport::flush_idle() {
  for (size_t i = 0; i < connector_->active_count(); ++i)
    if (connector_->active(i).has_unsent()) connector_->active(i).flush();
}

size_t ShmTransport::poll(std::span<Completion> completions) {
  bool moved = false;
  const size_t count = connector_->active_count();
  for (size_t i = 0; i < count; ++i) {
    Peer& peer = connector_->active(i);
    // pairs with Connector::handle_packet (goodbye): acquire, so that the peer's last cells are seen in drain.
    const PeerState state = peer.state.load(std::memory_order_acquire);
    if (state == PeerState::failed) continue;
    moved |= drain(peer);
    if (peer.has_backlog()) peer.flush();
    if (state == PeerState::left) check_left(peer);
  }
  if (receiver_.has_work()) moved |= receiver_.advance_work();
  if (outbox_.has_streams()) moved |= outbox_.advance_streams();
  if (moved) {
    idle_polls_ = 0;
  } else if (++idle_polls_ == shm::kIdlePollsBeforeFlush) {
    flush_idle();
  }
  const size_t taken = completions_.take(completions);
  const bool busy = receiver_.has_work() || outbox_.has_streams() || !completions_.empty();
  // pairs with idle: relaxed, a hint; stored only when it changes, for idle runs on another thread.
  if (busy != busy_.load(std::memory_order_relaxed)) busy_.store(busy, std::memory_order_relaxed);
  return taken;
}

void ShmTransport::cancel(uint64_t channel) {
  outbox_.cancel(channel);
  receiver_.cancel(channel);
  completions_.drop(channel);
}

void ShmTransport::forget(uint64_t channel) { receiver_.forget(channel); }

void ShmTransport::disconnect(int rank) {
  Peer* const peer = connector_->peer(rank);
  if (peer == nullptr) return;
  connector_->disconnect(*peer);
  outbox_.drop(*peer);
}

PeerFailure ShmTransport::take_failure() { return connector_->failures().take(); }

void ShmTransport::idle(Deadline deadline) {
  const int64_t timeout_us = std::min<int64_t>(deadline.remaining_us(), shm::kMaxSleepUs);
  if (timeout_us == 0 || busy_.load(std::memory_order_relaxed)) return;  // a hint, see poll
  doorbell_.sleep(timeout_us, [&] {
    for (size_t i = 0; i < connector_->active_count(); ++i)
      if (connector_->active(i).in().peek() != nullptr) return true;
    return connector_->failures().any();
  });
}

}  // namespace tutti::internal
