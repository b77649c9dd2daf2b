// The connector's half that runs on the watch thread: strangers become peers, and peers go.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/base/descriptors.h"
#include "src/base/log.h"
#include "transport/shm/connector.h"

namespace tutti::internal::shm {
namespace {

constexpr int64_t kHelloTimeoutUs = 10'000'000;  // a stranger that says nothing is dropped after this
constexpr size_t kMaxStrangers = 256;            // connections in the middle of a handshake
constexpr size_t kMaxForeigners = 16;            // the same of other users, who are refused at their first word

}  // namespace

void Connector::serve() {
  std::array<epoll_event, 64> events;
  int count = 0;
  do {
    count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  } while (count < 0 && errno == EINTR);
  std::lock_guard lock(mutex_);
  for (int i = 0; i < count; ++i) {
    const uint64_t id = events[static_cast<size_t>(i)].data.u64;
    if (id == 0)
      accept_all();
    else
      handle(id);
  }
}

void Connector::accept_all() {
  drop_expired();
  for (;;) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && errno == EINTR) continue;
    if (!fd && (errno == EMFILE || errno == ENFILE) && turn_one_away()) continue;
    if (!fd) return;  // no more
    const auto caller = credentials_of(fd.get());
    const bool foreign = !caller || caller.value().uid != geteuid();
    const auto strangers = std::count_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
      const Connection& other = entry.second;
      return other.foreign == foreign && (other.stage == Stage::hello_awaited || other.stage == Stage::ready_awaited);
    });
    if (static_cast<size_t>(strangers) >= (foreign ? kMaxForeigners : kMaxStrangers)) continue;
    if (!watch(fd.get(), next_id_).ok()) continue;
    Connection& connection = connections_[next_id_++];
    connection.fd = ParentOnlyFd(std::move(fd));
    connection.stage = Stage::hello_awaited;
    connection.foreign = foreign;
    connection.until = Deadline::after_us(kHelloTimeoutUs);
  }
}

// Without a descriptor a connection cannot even be refused, and would keep the listener readable for ever: the spare
// one takes it for a moment. The initiator finds its connection closed.
bool Connector::turn_one_away() {
  if (!spare_) return false;
  if (!std::exchange(is_short_, true))
    log_warn("too few descriptors: connections of other ranks are turned away; {}", descriptor_limit());
  spare_ = UniqueFd();
  const bool turned = UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).get() >= 0;
  spare_ = open_spare();
  return turned;
}

void Connector::drop_expired() {
  std::erase_if(connections_, [](const auto& entry) { return entry.second.until.passed(); });
}

void Connector::handle(uint64_t id) {
  for (;;) {
    const auto it = connections_.find(id);
    if (it == connections_.end()) return;  // dropped by what came before
    Connection& connection = it->second;
    if (connection.stage == Stage::process) return on_process_end(id);
    Packet buffer;
    const auto bytes = std::as_writable_bytes(std::span(&buffer, 1));
    Received received = receive_packet(connection.fd.get(), bytes);
    if (received.bytes < 0 && received.error == EAGAIN) return;
    if (received.bytes <= 0)
      return on_closed(id, received.error != 0
                               ? fmt::format("its connection broke: {}", strerrordesc_np(received.error))
                               : std::string("its process closed the connection without a goodbye"));
    handle_packet(id, connection, received, bytes.first(static_cast<size_t>(received.bytes)));
  }
}

void Connector::handle_packet(uint64_t id, Connection& connection, Received& received,
                              std::span<const std::byte> bytes) {
  Packet packet;
  if (!Handshake::parse(bytes, packet).ok()) return on_closed(id, "it sent what is no packet of the handshake");
  if (connection.stage == Stage::hello_awaited && packet.kind == PacketKind::hello)
    return on_hello(id, connection, packet, received);
  if (connection.stage == Stage::ready_awaited && packet.kind == PacketKind::ready) {
    connection.met.access.it_reads = packet.can_read != 0 && options_.read_processes;
    UniqueFd fd = connection.fd.take();
    Acquaintance met = std::move(connection.met);
    const int rank = connection.rank;
    connections_.erase(id);
    // The socket is registered under its old id, which is gone: register it anew.
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
    (void)adopt(rank, std::move(fd), std::move(met));
    return;
  }
  Peer* const peer = connection.stage == Stage::open ? this->peer(connection.rank) : nullptr;
  if (peer != nullptr && packet.kind == PacketKind::goodbye) {
    auto expected = PeerState::connected;
    // pairs with ShmTransport::poll: release, so that the cells which the peer wrote before come first.
    peer->state.compare_exchange_strong(expected, PeerState::left, std::memory_order_release);
    std::erase_if(connections_, [&](const auto& entry) { return entry.second.rank == peer->rank; });
    doorbell_.wake_if_asleep();
    return;
  }
  on_closed(id, packet.kind == PacketKind::abandon ? "it has given up this rank"
                                                   : "it sent a packet that does not belong here");
}

void Connector::on_hello(uint64_t id, Connection& connection, const Packet& hello, Received& received) {
  auto credentials = credentials_of(connection.fd.get());
  if (!credentials) return refuse(id, hello, credentials.status());
  if (credentials->uid != geteuid())
    return refuse(
        id, hello,
        Status(Code::unsupported, fmt::format("the caller's user id is {}, {} expected", credentials->uid, geteuid())));
  if (Status status = handshake_.check_hello(hello); !status.ok()) return refuse(id, hello, status);
  const auto rank = static_cast<size_t>(hello.rank);
  if (peer(hello.rank) != nullptr || (attempts_[rank] > 0 && own_.rank < hello.rank)) {
    (void)handshake_.send(connection.fd.get(), handshake_.packet(PacketKind::busy, hello.rank, hello.nonce));
    connections_.erase(id);
    return;
  }
  if (Status status = handshake_.prepare_ring(hello.rank, region_); !status.ok()) return refuse(id, hello, status);
  auto met = handshake_.meet(connection.fd.get(), hello, received);
  if (!met) return refuse(id, hello, met.status());
  if (!options_.read_processes) met->access.we_read = false;
  Packet welcome = handshake_.packet(PacketKind::welcome, hello.rank, hello.nonce);
  welcome.can_read = met->access.we_read;
  if (handshake_.send(connection.fd.get(), welcome) != 0) {
    connections_.erase(id);
    return;
  }
  connection.stage = Stage::ready_awaited;
  connection.until = Deadline::after_us(kHelloTimeoutUs);
  connection.rank = hello.rank;
  connection.met = std::move(*met);
}

void Connector::refuse(uint64_t id, const Packet& hello, const Status& why) {
  Packet packet = handshake_.packet(PacketKind::refuse, hello.rank, hello.nonce);
  const std::string& text = why.message();
  std::copy_n(text.data(), std::min(text.size(), packet.text.size() - 1), packet.text.data());
  // It may be a stranger: it learns nothing but why.
  packet.code = static_cast<int32_t>(why.code());
  packet.nonce = packet.probe_address = packet.probe_value = 0;
  (void)handshake_.send(connections_.at(id).fd.get(), packet);
  connections_.erase(id);
}

void Connector::on_closed(uint64_t id, const std::string& reason) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  const int rank = it->second.stage == Stage::open ? it->second.rank : -1;
  connections_.erase(it);
  Peer* const lost = peer(rank);
  if (lost == nullptr) return;
  std::erase_if(connections_, [&](const auto& entry) { return entry.second.rank == rank; });
  fail(*lost, reason);
}

void Connector::on_process_end(uint64_t id) {
  const int rank = connections_.at(id).rank;
  connections_.erase(id);
  // A goodbye may still lie in the connection: it goes first.
  std::vector<uint64_t> open;
  for (const auto& [other, connection] : connections_)
    if (connection.rank == rank && connection.stage == Stage::open) open.push_back(other);
  for (const uint64_t other : open) handle(other);
  Peer* const lost = peer(rank);
  // acquire like the owner's look, though nothing is read after it here.
  if (lost != nullptr && lost->state.load(std::memory_order_acquire) == PeerState::connected)
    fail(*lost, "its process has ended");
}

}  // namespace tutti::internal::shm
