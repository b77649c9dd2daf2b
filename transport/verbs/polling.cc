// What a poll of the transport takes from the devices and does for its peers, and how a rank sleeps until there is
// more.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "src/base/clock.h"
#include "transport/sleep.h"
#include "transport/verbs/failure.h"
#include "transport/verbs/tuning.h"
#include "transport/verbs/verbs_transport.h"
#include "transport/verbs/wire.h"

namespace tutti::internal {

using verbs::Header;
using verbs::Kind;
using verbs::Peer;
using verbs::PeerState;

namespace {

// Messages are told from sends by the number's lowest bit: buffers lie at even addresses.
bool is_send(const ibv_wc& work) { return (work.wr_id & 1) != 0; }
verbs::Buffer& buffer_of(const ibv_wc& work) { return *reinterpret_cast<verbs::Buffer*>(work.wr_id); }

template <class Body>
bool read_body(std::span<const std::byte> data, Body& body) {
  if (data.size() != sizeof body) return false;
  std::memcpy(&body, data.data(), sizeof body);
  return true;
}

}  // namespace

const verbs::Route* VerbsTransport::find_route(size_t port, uint32_t pair_number) {
  if (known_peers_ < connector_.peers().size()) learn_routes();
  return routes_[port].find(pair_number);
}

void VerbsTransport::learn_routes() {
  const auto peers = connector_.peers();
  for (; known_peers_ < peers.size(); ++known_peers_)
    for (const auto& pair : peers[known_peers_]->pairs)
      routes_[static_cast<size_t>(pair->port_index())].add({pair->number(), peers[known_peers_], pair.get()});
}

bool VerbsTransport::drain(size_t port) {
  std::array<ibv_wc, verbs::kPollBatch> works;
  const int count = ibv_poll_cq(queues_[port]->completions(), verbs::kPollBatch, works.data());
  for (int i = 0; i < count; ++i) on_completion(port, works[static_cast<size_t>(i)]);
  return count > 0;
}

void VerbsTransport::on_completion(size_t port, const ibv_wc& work) {
  const verbs::Route* const route = find_route(port, work.qp_num);
  if (route != nullptr) {
    if (work.status != IBV_WC_SUCCESS) on_error(port, *route, work);
    if (is_send(work)) {
      route->pair->retire(work.wr_id >> 1, [&](const verbs::Sent& sent) { outbox_.on_sent(sent); });
    } else if (work.status == IBV_WC_SUCCESS) {
      on_receive(*route, work);
      if (route->pair->owes_many()) route->peer->raise_alarm();  // no answer has returned the credits
    }
  }
  if (!is_send(work)) queues_[port]->give_back(buffer_of(work));
}

void VerbsTransport::on_error(size_t port, const verbs::Route& route, const ibv_wc& work) {
  Peer& peer = *route.peer;
  // Who has left takes nothing any more; that matters only to whoever wants something of it, see tend.
  if (verbs::is_flushed(work.status) || state_of(peer) == PeerState::left) return;
  const verbs::FailedWork failed{work.status, work.vendor_err, is_send(work) ? IBV_WC_SEND : IBV_WC_RECV};
  connector_.fail(peer, describe_failure(failed, ports_[port]->name(), peer.rank));
}

void VerbsTransport::on_receive(const verbs::Route& route, const ibv_wc& work) {
  Peer& peer = *route.peer;
  if (state_of(peer) == PeerState::failed) return;
  if (state_of(peer) == PeerState::accepting) {
    // Who sends can receive.
    auto expected = PeerState::accepting;
    peer.state.compare_exchange_strong(expected, PeerState::connected, std::memory_order_relaxed);
  }
  if (work.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    route.pair->received_write();
    return receiver_.on_immediate(peer, work.imm_data);
  }
  const std::byte* const data = buffer_of(work).data;
  Header header;
  if (work.byte_len >= sizeof header) std::memcpy(&header, data, sizeof header);
  if (work.byte_len < sizeof header || header.bytes != work.byte_len - sizeof header)
    return connector_.fail(peer, "it sent a message of a length that makes no sense");
  route.pair->received(header);
  if (!dispatch(peer, header, {data + sizeof header, header.bytes}))
    connector_.fail(peer,
                    fmt::format("it sent a message of kind {} that makes no sense", static_cast<int>(header.kind)));
}

bool VerbsTransport::dispatch(Peer& peer, const Header& header, std::span<const std::byte> data) {
  switch (header.kind) {
    case Kind::message: receiver_.on_message(peer, {header.channel, header.match}, data); return true;
    case Kind::offer: {
      Offer offer;
      if (!read_body(data, offer)) return false;
      receiver_.on_offer(peer, {header.channel, header.match}, offer);
      return true;
    }
    case Kind::grant: {
      verbs::GrantBody grant;
      return read_body(data, grant) && outbox_.on_grant(peer, header, grant);
    }
    case Kind::answer: {
      verbs::AnswerBody answer;
      return read_body(data, answer) && outbox_.on_answer(peer, answer);
    }
    case Kind::enough: outbox_.on_enough(peer, header); return true;
    case Kind::revoke:
    case Kind::withdrawn: {
      verbs::GrantName name;
      if (!read_body(data, name)) return false;
      header.kind == Kind::revoke ? outbox_.on_revoke(peer, header, name) : receiver_.on_withdrawn(peer, name);
      return true;
    }
    case Kind::credit: return true;
    case Kind::goodbye: {
      auto expected = PeerState::connected;
      peer.state.compare_exchange_strong(expected, PeerState::left, std::memory_order_relaxed);  // ours to read
      peer.raise_alarm();
      return true;
    }
  }
  return false;
}

void VerbsTransport::tend_all(bool drained) {
  connector_.alarm().exchange(false, std::memory_order_acquire);  // pairs with raise_alarm
  for (Peer* peer : connector_.peers())
    if (tend(*peer, drained)) peer->raise_alarm();
}

bool VerbsTransport::tend(Peer& peer, bool drained) {
  const PeerState state = state_of(peer);
  if (state == PeerState::failed) {
    if (!peer.is_buried) bury(peer);
    return false;
  }
  if (peer.has_backlog()) peer.flush();
  const bool owes = !peer.return_credits();
  if (const int error = peer.refusal(); error != 0)
    connector_.fail(peer, fmt::format("its queue pair takes no more requests: {}", strerrordesc_np(error)));
  const bool is_ending = state == PeerState::left || peer.hung_up.load(std::memory_order_relaxed);  // a hint
  // What came before the end is taken when a look that begins after it finds nothing.
  if (!std::exchange(peer.end_is_seen, is_ending) || !drained) return is_ending || owes || peer.has_backlog();
  if (state != PeerState::left)
    connector_.fail(peer, "it has closed the connection without a goodbye");
  else if (receiver_.waits_for(peer) || outbox_.waits_for(peer))
    connector_.fail(peer, "it has left the world in the middle of an operation");
  return false;
}

void VerbsTransport::bury(Peer& peer) {
  peer.is_buried = true;
  peer.close();
  outbox_.drop(peer);
  receiver_.drop(peer);
}

bool VerbsTransport::progress() {
  bool moved = false;
  for (size_t port = 0; port < ports_.size(); ++port) moved |= drain(port);
  if (connector_.alarm().load(std::memory_order_relaxed)) tend_all(!moved);  // a hint: tend_all takes it
  if (outbox_.has_work()) moved |= outbox_.advance();
  if (receiver_.has_work()) moved |= receiver_.advance();
  return moved;
}

void VerbsTransport::check_awaited() {
  const int64_t now = now_us();
  if (now - checked_us_ < verbs::kCheckEveryUs) return;
  checked_us_ = now;
  for (Peer* peer : connector_.peers())
    if (state_of(*peer) == PeerState::connected && (receiver_.waits_for(*peer) || outbox_.waits_for(*peer)) &&
        !peer->main_pair().check())
      peer->raise_alarm();
}

size_t VerbsTransport::poll(std::span<Completion> completions) {
  const bool moved = progress();
  // pairs with idle: relaxed, a hint. Arming costs a system call: only for who wants to sleep. What came before it
  // wakes nobody, so only a look after it that finds nothing allows to sleep.
  if (!moved && wake_.load(std::memory_order_relaxed) == Wake::wanted) {
    check_awaited();
    for (const auto& queues : queues_) queues->arm();
    wake_.store(progress() ? Wake::unwanted : Wake::armed, std::memory_order_relaxed);
  }
  return completions_.take(completions);
}

void VerbsTransport::idle(Deadline deadline) {
  // pairs with poll: relaxed, a hint.
  if (wake_.load(std::memory_order_relaxed) != Wake::armed) {
    wake_.store(Wake::wanted, std::memory_order_relaxed);
    return std::this_thread::yield();
  }
  std::array<pollfd, verbs::kMaxPorts> entries;
  for (size_t port = 0; port < queues_.size(); ++port) entries[port] = {queues_[port]->wake_fd(), POLLIN, 0};
  sleep_until_readable({entries.data(), queues_.size()}, deadline, verbs::kMaxSleepUs);
  for (const auto& queues : queues_) queues->take_wake_up();
  wake_.store(Wake::unwanted, std::memory_order_relaxed);
}

}  // namespace tutti::internal
