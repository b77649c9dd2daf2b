#include "transport/ucx/connector.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "src/base/log.h"

namespace tutti::internal::ucx {

Connector::Connector(Address own, int world_size, Mail& mail)
    : own_(std::move(own)),
      mail_(mail),
      out_of_reach_(static_cast<size_t>(world_size)),
      table_(static_cast<size_t>(world_size)),
      known_(static_cast<size_t>(world_size)) {}

Status Connector::connect(int rank, std::string_view text, Deadline deadline) {
  auto address = Address::decode(text);
  if (!address) return address.status();
  if (address->rank != rank || !is_rank(rank) || rank == own_.rank)
    return Status(Code::mismatch,
                  fmt::format("connecting to rank {} with the address of rank {}", rank, address->rank));
  std::unique_lock lock(mutex_);
  Peer* known = peer(rank);
  if (known == nullptr) {
    if (out_of_reach_[static_cast<size_t>(rank)])
      return Status::peer_failed(rank, fmt::format("rank {} is gone: it was never connected", rank));
    known = &publish(std::move(*address));
    const uint64_t nonce = known->address.nonce;
    lock.unlock();
    write(rank, Letter::Kind::hello, nonce);
    lock.lock();
  } else if (known->address.nonce != address->nonce) {
    return Status(Code::mismatch, fmt::format("rank {} has another address already", rank));
  }
  return wait(*known, deadline, lock);
}

Status Connector::wait(Peer& peer, Deadline deadline, std::unique_lock<std::mutex>& lock) {
  const int rank = peer.address.rank;
  for (;;) {
    const PeerState state = peer.current();
    if (state == PeerState::failed)
      return Status::peer_failed(rank, fmt::format("the connection to rank {} is closed", rank));
    if (state != PeerState::asking) return {};  // what a peer sent before it left may still be taken
    if (deadline.passed())
      return Status(Code::timeout, fmt::format("rank {} has not answered a request to connect by UCX", rank));
    if (deadline.is_never()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::microseconds(deadline.remaining_us()));
    }
  }
}

void Connector::write(int rank, Letter::Kind kind, uint64_t to_nonce) {
  Letter letter;
  letter.kind = kind;
  letter.to_nonce = to_nonce;
  letter.from = own_;
  mail_.send(rank, letter.encode());
}

void Connector::deliver(int rank, std::string_view bytes) {
  auto letter = Letter::decode(bytes);
  if (!is_rank(rank) || !letter || letter->from.rank != rank) {
    log_info("a letter of rank {} makes no sense: dropped", rank);
    return;
  }
  const uint64_t from_nonce = letter->from.nonce;
  const auto kind = letter->kind;
  bool is_for_us = letter->to_nonce == own_.nonce;
  {
    const std::scoped_lock lock(mutex_);
    Peer* known = peer(rank);
    if (kind == Letter::Kind::refuse) {
      if (is_for_us && known != nullptr && known->current() == PeerState::asking)
        fail(*known, "it refuses the connection: it is not the one whose address this was");
    } else {
      is_for_us = is_for_us && (known == nullptr || known->address.nonce == from_nonce);
      if (is_for_us && known == nullptr && kind == Letter::Kind::hello) known = &publish(std::move(letter->from));
      if (is_for_us && known != nullptr) set_connected(*known);
    }
  }
  changed_.notify_all();
  if (!is_for_us) log_info("a letter of rank {} is not for this transport: refused", rank);
  if (kind == Letter::Kind::hello) write(rank, is_for_us ? Letter::Kind::welcome : Letter::Kind::refuse, from_nonce);
}

void Connector::gets_no_letters(int rank) {
  if (!is_rank(rank)) return;
  {
    const std::scoped_lock lock(mutex_);
    out_of_reach_[static_cast<size_t>(rank)] = true;
    if (Peer* const known = peer(rank)) {
      known->is_out_of_reach.store(true, std::memory_order_relaxed);  // a hint: what it has sent may still come
      if (known->current() == PeerState::asking) fail(*known, "it was gone before it was connected");
    }
  }
  changed_.notify_all();
}

Peer& Connector::publish(Address address) {
  const int rank = address.rank;
  peers_.push_back(std::make_unique<Peer>(std::move(address)));
  Peer* const peer = peers_.back().get();
  const size_t count = known_count_.load(std::memory_order_relaxed);  // written under the mutex only
  known_[count] = peer;
  // pairs with peers() and peer(): release, so that the peer is seen complete.
  known_count_.store(count + 1, std::memory_order_release);
  table_[static_cast<size_t>(rank)].store(peer, std::memory_order_release);
  return *peer;
}

void Connector::set_connected(Peer& peer) {
  auto expected = PeerState::asking;
  peer.state.compare_exchange_strong(expected, PeerState::connected, std::memory_order_relaxed);  // the state alone
}

void Connector::fail(Peer& peer, std::string reason) {
  // relaxed: the failure itself is published by failures_.
  if (peer.state.exchange(PeerState::failed, std::memory_order_relaxed) == PeerState::failed) return;
  failures_.push(peer.address.rank, std::move(reason));
  changed_.notify_all();
}

}  // namespace tutti::internal::ucx
