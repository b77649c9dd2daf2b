#include "transport/shm/connector.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::internal::shm {
Connector::Connector(Region& region, const Address& own, const Options& options)
    : region_(region),
      own_(own),
      options_(options),
      handshake_(region, own_, options.world_size),
      doorbell_(region.at<uint32_t>(region.layout().doorbell_offset())),
      attempts_(static_cast<size_t>(options.world_size)),
      table_(static_cast<size_t>(options.world_size)),
      active_(static_cast<size_t>(options.world_size)) {}

Result<std::unique_ptr<Connector>> Connector::create(Region& region, const Address& own, const Options& options) {
  std::unique_ptr<Connector> connector(new Connector(region, own, options));
  TUTTI_RETURN_IF_ERROR(connector->listen());
  return connector;
}

Connector::~Connector() {
  std::lock_guard lock(mutex_);
  for (auto& [id, connection] : connections_)
    if (connection.stage == Stage::open)
      (void)handshake_.send(connection.fd.get(), handshake_.packet(PacketKind::goodbye, connection.rank, 0));
}

Status Connector::listen() {
  auto listener = listen_abstract(name_of(own_), std::max(128, options_.world_size));
  if (!listener) return listener.status();
  listener_ = ParentOnlyFd(std::move(*listener));
  epoll_ = ParentOnlyFd(UniqueFd(epoll_create1(EPOLL_CLOEXEC)));
  if (!epoll_) return Status::system(Code::out_of_resources, "epoll_create1 for peers on this node", errno);
  spare_ = open_spare();
  return watch(listener_.get(), 0);
}

Status Connector::watch(int fd, uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return Status::system(Code::out_of_resources, "epoll_ctl for a peer on this node", errno);
  return {};
}

Status Connector::connect(int rank, std::string_view address_bytes, Deadline deadline) {
  auto address = Address::decode(address_bytes);
  if (!address) return address.status();
  if (address->rank != rank || rank < 0 || rank >= options_.world_size)
    return Status(Code::mismatch, fmt::format("connecting to rank {} of {} with the address of rank {}", rank,
                                              options_.world_size, address->rank));
  TUTTI_RETURN_IF_ERROR(same_node(own_, *address));
  const auto index = static_cast<size_t>(rank);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (Peer* const known = peer(rank)) {
      // The state alone matters. What a peer sent before it left in order may still be taken.
      if (known->state.load(std::memory_order_relaxed) != PeerState::failed) return {};
      return Status::peer_failed(rank, fmt::format("rank {} (pid {}) is gone", rank, address->pid));
    }
    ++attempts_[index];
    lock.unlock();
    auto connected = attempt(*address, deadline);
    lock.lock();
    --attempts_[index];
    if (connected && *connected) return {};
    if (peer(rank) != nullptr) continue;
    // A peer whose own connection the watch thread has yet to complete may have used it and left already.
    if (!connected && !is_arriving(rank)) return connected.status();
    if (deadline.passed())
      return Status(Code::timeout,
                    fmt::format("rank {} (pid {}) did not finish its own connection", rank, address->pid));
    changed_.wait_for(lock, std::chrono::milliseconds(10), [&] { return peer(rank) != nullptr; });
  }
}

bool Connector::is_arriving(int rank) const {
  return std::any_of(connections_.begin(), connections_.end(), [&](const auto& entry) {
    return entry.second.stage == Stage::ready_awaited && entry.second.rank == rank;
  });
}

Result<Packet> Connector::await_answer(int socket, const Address& address, Deadline deadline,
                                       Received& received) const {
  if (!wait_readable(socket, deadline))
    return Status(Code::timeout,
                  fmt::format("rank {} (pid {}) did not answer the handshake", address.rank, address.pid));
  Packet answer;
  received = receive_packet(socket, std::as_writable_bytes(std::span(&answer, 1)));
  if (received.bytes <= 0)
    return Status::peer_failed(
        address.rank,
        fmt::format("rank {} (pid {}) closed the connection during the handshake{}{}", address.rank, address.pid,
                    received.error != 0 ? ": " : "", received.error != 0 ? strerrordesc_np(received.error) : ""));
  Packet packet;
  TUTTI_RETURN_IF_ERROR(
      Handshake::parse(std::as_bytes(std::span(&answer, 1)).first(static_cast<size_t>(received.bytes)), packet));
  return packet;
}

Result<bool> Connector::attempt(const Address& address, Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(handshake_.prepare_ring(address.rank, region_));
  auto socket = connect_abstract(name_of(address), deadline);
  if (!socket) {
    if (socket.status().code() != Code::peer_failed) return socket.status();
    return Status::peer_failed(
        address.rank, fmt::format("rank {} (pid {}): {}", address.rank, address.pid, socket.status().message()));
  }
  if (const int error =
          handshake_.send(socket->get(), handshake_.packet(PacketKind::hello, address.rank, address.nonce));
      error != 0 && error != EPIPE)  // closed already: the answer tells why
    return Status::system(Code::peer_failed, fmt::format("greeting rank {} (pid {})", address.rank, address.pid),
                          error);
  Received received;
  auto answer = await_answer(socket->get(), address, deadline, received);
  if (!answer) return answer.status();
  if (answer->kind == PacketKind::busy) return false;
  if (answer->kind == PacketKind::refuse)
    return Status(answer->code == TUTTI_OUT_OF_RESOURCES ? Code::out_of_resources : Code::unsupported,
                  fmt::format("rank {} (pid {}) refused: {}", address.rank, address.pid, answer->text.data()));
  if (answer->kind != PacketKind::welcome || answer->rank != address.rank || answer->nonce != address.nonce)
    return Status(Code::mismatch, fmt::format("rank {} answered where rank {} was called", answer->rank, address.rank));
  auto met = handshake_.meet(socket->get(), *answer, received);
  if (!met) return met.status();
  if (!options_.read_processes) met->access = {met->access.pid, false, false};
  Packet ready = handshake_.packet(PacketKind::ready, address.rank, address.nonce);
  ready.can_read = met->access.we_read;
  if (const int error = handshake_.send(socket->get(), ready); error != 0)
    return Status::system(Code::peer_failed, fmt::format("answering rank {} (pid {})", address.rank, address.pid),
                          error);
  std::lock_guard lock(mutex_);
  TUTTI_RETURN_IF_ERROR(adopt(address.rank, std::move(*socket), std::move(*met)));
  return true;
}

void Connector::keep(int rank, Acquaintance met) {
  auto& slot = table_[static_cast<size_t>(rank)];
  if (slot.load(std::memory_order_relaxed) != nullptr) return;  // under mutex_
  Peer& peer =
      *peers_.emplace_back(std::make_unique<Peer>(rank, own_.rank, region_, std::move(met.mapping), met.access));
  const size_t count = active_count_.load(std::memory_order_relaxed);  // changed under mutex_ only
  active_[count] = &peer;
  // pairs with active_count: release, so that the entry comes before the count.
  active_count_.store(count + 1, std::memory_order_release);
  // pairs with peer(): release, so that the peer is complete before it is found.
  slot.store(&peer, std::memory_order_release);
  changed_.notify_all();
}

Status Connector::adopt(int rank, UniqueFd socket, Acquaintance met) {
  TUTTI_RETURN_IF_ERROR(watch(socket.get(), next_id_));
  Connection& connection = connections_[next_id_++];
  connection.fd = ParentOnlyFd(std::move(socket));
  connection.stage = Stage::open;
  connection.rank = rank;
  if (met.process && watch(met.process.get(), next_id_).ok()) {
    Connection& process = connections_[next_id_++];
    process.fd = ParentOnlyFd(std::move(met.process));
    process.stage = Stage::process;
    process.rank = rank;
  }
  keep(rank, std::move(met));
  return {};
}

void Connector::fail(Peer& peer, std::string reason) {
  // relaxed: the failure itself is published by failures_.
  if (peer.state.exchange(PeerState::failed, std::memory_order_relaxed) == PeerState::failed) return;
  failures_.push(peer.rank, std::move(reason));
  doorbell_.wake_if_asleep();
}

void Connector::disconnect(Peer& peer) {
  peer.state.store(PeerState::failed, std::memory_order_relaxed);  // read by the owner, who calls this
  std::lock_guard lock(mutex_);
  std::erase_if(connections_, [&](const auto& entry) {
    const Connection& connection = entry.second;
    if (connection.rank != peer.rank) return false;
    if (connection.stage == Stage::open)
      (void)handshake_.send(connection.fd.get(), handshake_.packet(PacketKind::abandon, peer.rank, 0));
    return true;
  });
}

}  // namespace tutti::internal::shm
