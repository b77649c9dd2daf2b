#include "transport/verbs/verbs_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "src/base/log.h"
#include "transport/sleep.h"
#include "transport/verbs/failure.h"
#include "transport/verbs/tuning.h"
#include "transport/verbs/wire.h"

namespace tutti::internal {

using verbs::Header;
using verbs::Kind;
using verbs::Peer;
using verbs::PeerState;

namespace {

// A piece is a 32-bit length, and a whole number of cache lines.
constexpr uint64_t kLargestPiece = uint64_t{1} << 30;

uint64_t new_nonce() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

// Messages are told from sends by the number's lowest bit: buffers lie at even addresses.
bool is_send(const ibv_wc& work) { return (work.wr_id & 1) != 0; }
verbs::Buffer& buffer_of(const ibv_wc& work) { return *reinterpret_cast<verbs::Buffer*>(work.wr_id); }

template <class Body>
bool read_body(std::span<const std::byte> data, Body& body) {
  if (data.size() != sizeof body) return false;
  std::memcpy(&body, data.data(), sizeof body);
  return true;
}

PeerState state_of(const Peer& peer) { return peer.state.load(std::memory_order_relaxed); }  // the state alone matters

uint64_t piece_limit(const std::vector<std::unique_ptr<verbs::Port>>& ports) {
  uint64_t limit = kLargestPiece;
  for (const auto& port : ports) limit = std::min<uint64_t>(limit, port->attributes().max_msg_sz);
  return limit;
}

}  // namespace

Result<std::unique_ptr<VerbsTransport>> VerbsTransport::create(const Options& options, Mail& mail) {
  std::vector<verbs::PassedOver> passed_over;
  auto ports = open_ports(options.settings, options.preferred, passed_over);
  for (const auto& [device, port, why] : passed_over) log_info("{} port {} is not used: {}", device, port, why);
  if (!ports) return ports.status();
  if (ports->size() > verbs::kMaxPorts) ports->resize(verbs::kMaxPorts);
  AllQueues queues;
  verbs::Address address;
  address.rank = options.rank;
  address.nonce = new_nonce();
  for (const auto& port : *ports) {
    auto made = verbs::Queues::create(*port, static_cast<uint32_t>(options.world_size - 1));
    if (!made) return made.status();
    queues.push_back(std::move(*made));
    auto place = port->address(options.settings);
    if (!place) return place.status();
    address.ports.push_back(std::move(*place));
  }
  address.through_rdmacm = options.settings.through_rdmacm;
  auto listeners = verbs::Listeners::open(*ports, address);
  if (!listeners) return listeners.status();
  auto pinger = verbs::Pinger::create(*ports, address, options.settings);
  return std::unique_ptr<VerbsTransport>(new VerbsTransport(options, std::move(*ports), std::move(queues),
                                                            std::move(address), mail, std::move(*listeners),
                                                            std::move(pinger)));
}

VerbsTransport::VerbsTransport(const Options& options, Ports ports, AllQueues queues, verbs::Address address,
                               Mail& mail, std::unique_ptr<verbs::Listeners> listeners,
                               std::unique_ptr<verbs::Pinger> pinger)
    : ports_(std::move(ports)),
      queues_(std::move(queues)),
      pinger_(std::move(pinger)),
      domain_(ports_),
      registrar_(domain_, options.registrar),
      windows_(registrar_, options.numa_node),
      staging_(registrar_),
      outbox_(registrar_, staging_, completions_, cancelled_, piece_limit(ports_)),
      receiver_(registrar_, staging_, completions_, cancelled_),
      connector_(std::move(address), options.world_size, queues_, options.settings, mail, std::move(listeners)),
      routes_(ports_.size()),
      posting_(static_cast<size_t>(options.world_size)),
      expecting_(kMaxOperands) {}

// The goodbye comes after all messages; when the device knows that it has arrived, they all have.
VerbsTransport::~VerbsTransport() {
  const auto is_here = [](const Peer* peer) { return state_of(*peer) == PeerState::connected; };
  const Deadline deadline = Deadline::after_us(verbs::kLingerUs);
  const auto all = [&](auto done) { return std::ranges::all_of(connector_.peers(), done); };
  while (!all([&](const Peer* peer) { return !is_here(peer) || !peer->has_backlog(); }) && !deadline.passed())
    progress();
  for (Peer* peer : connector_.peers())
    if (is_here(peer)) peer->main_pair().send({.kind = Kind::goodbye}, {});
  while (!all([&](const Peer* peer) { return !is_here(peer) || peer->is_idle(); }) && !deadline.passed()) progress();
}

std::vector<std::string> VerbsTransport::devices() const {
  std::vector<std::string> names;
  for (const auto& port : ports_) names.push_back(port->device());
  return names;
}

std::string VerbsTransport::address() const { return connector_.own().encode(); }

Status VerbsTransport::reachable(std::string_view peer_address) const {
  auto peer = verbs::Address::decode(peer_address);
  return peer ? paths_between(connector_.own(), *peer, connector_.settings()).status() : peer.status();
}

// Nothing short of a connection tells.
Status VerbsTransport::answers(std::string_view peer_address, Deadline) const { return reachable(peer_address); }

Status VerbsTransport::connect(int peer, std::string_view peer_address, Deadline deadline) {
  return connector_.connect(peer, peer_address, deadline);
}

std::vector<Watch> VerbsTransport::watches() {
  std::vector<Watch> watches;
  for (size_t port = 0; port < ports_.size(); ++port) watches.push_back({ports_[port]->context()->async_fd, port});
  if (connector_.fd() >= 0) watches.push_back({connector_.fd(), ports_.size()});
  watches.push_back({connector_.failure_fd(), ports_.size() + 1});
  return watches;
}

void VerbsTransport::serve(uint64_t key) {
  if (key == ports_.size()) return connector_.serve();
  if (key > ports_.size()) return;  // take_failure follows
  const verbs::AsyncEvent event = ports_[key]->take_event();
  if (event.text.empty()) return;
  log_warn("{}", event.text);
  if (event.lost == verbs::AsyncEvent::Lost::nothing) return;
  // A link may come back: until then messages are sent again. What else is lost, does not.
  if (event.lost == verbs::AsyncEvent::Lost::port) return;
  for (Peer* peer : connector_.peers())
    for (const auto& pair : peer->pairs)
      if (static_cast<size_t>(pair->port_index()) == key &&
          (event.lost == verbs::AsyncEvent::Lost::device || pair->number() == event.queue_pair))
        connector_.fail(*peer, event.text);
}

void VerbsTransport::deliver(int peer, std::string_view letter) { connector_.deliver(peer, letter); }
void VerbsTransport::gets_no_letters(int peer) { connector_.gets_no_letters(peer); }

Result<void*> VerbsTransport::allocate(size_t bytes) { return windows_.allocate(bytes); }
Status VerbsTransport::release(void* memory) { return windows_.release(memory); }
Status VerbsTransport::register_memory(void* memory, size_t bytes) { return registrar_.add(memory, bytes); }
Status VerbsTransport::unregister_memory(void* memory) { return registrar_.remove(memory); }

void VerbsTransport::gone(int rank, const Peer* known) {
  if (known != nullptr && state_of(*known) == PeerState::left)
    connector_.fail(*connector_.peer(rank), "it has left the world");
}

Post VerbsTransport::post_send(const SendRequest& request) {
  size_t count = 0;
  for (const Endpoint& to : request.to) {
    Peer* const peer = connector_.peer(to.peer);
    if (peer == nullptr || state_of(*peer) != PeerState::connected) {
      gone(to.peer, peer);
      return Post::failed;
    }
    posting_[count++] = peer;
  }
  return outbox_.send(request, {posting_.data(), count});
}

bool VerbsTransport::can_receive(int rank, uint64_t channel, uint64_t match) {
  Peer* const peer = connector_.peer(rank);
  if (peer == nullptr) return false;
  if (state_of(*peer) == PeerState::connected) return true;
  // What it sent before it went may still be taken, if it came whole.
  if (peer->has_left_behind(channel, match)) return true;
  gone(rank, peer);
  return false;
}

Post VerbsTransport::post_recv(const RecvRequest& request) {
  if (!can_receive(request.from.peer, request.channel, request.from.match)) return Post::failed;
  return receiver_.receive(request, *connector_.peer(request.from.peer));
}

Post VerbsTransport::post_reduce(const ReduceRequest& request) {
  size_t count = 0;
  for (const ReduceOperand& operand : request.operands) {
    if (operand.from.peer >= 0 && !can_receive(operand.from.peer, request.channel, operand.from.match))
      return Post::failed;
    expecting_[count++] = operand.from.peer >= 0 ? connector_.peer(operand.from.peer) : nullptr;
  }
  return receiver_.reduce(request, {expecting_.data(), count});
}

const verbs::Route* VerbsTransport::find_route(size_t port, uint32_t pair_number) {
  const auto peers = connector_.peers();
  for (; known_peers_ < peers.size(); ++known_peers_)
    for (const auto& pair : peers[known_peers_]->pairs)
      routes_[static_cast<size_t>(pair->port_index())].add({pair->number(), peers[known_peers_], pair.get()});
  return routes_[port].find(pair_number);
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

size_t VerbsTransport::poll(std::span<Completion> completions) {
  const bool moved = progress();
  // pairs with idle: relaxed, a hint. Arming costs a system call: only for who wants to sleep. What came before it
  // wakes nobody, so only a look after it that finds nothing allows to sleep.
  if (!moved && wake_.load(std::memory_order_relaxed) == Wake::wanted) {
    for (const auto& queues : queues_) queues->arm();
    wake_.store(progress() ? Wake::unwanted : Wake::armed, std::memory_order_relaxed);
  }
  return completions_.take(completions);
}

void VerbsTransport::cancel(uint64_t channel) {
  cancelled_.insert(channel);
  outbox_.cancel(channel, connector_.peers());
  receiver_.cancel(channel, connector_.peers());
  const auto is_busy = [&](const Peer* peer) {
    return receiver_.owes_answer(*peer, channel) || outbox_.is_reading(*peer, channel);
  };
  for (Deadline deadline = Deadline::after_us(verbs::kRevokeUs); std::ranges::any_of(connector_.peers(), is_busy);) {
    progress();
    if (!deadline.passed()) continue;
    for (Peer* peer : connector_.peers())
      if (is_busy(peer)) give_up_on(*peer);
  }
  completions_.drop(channel);
}

// A closed connection moves nothing: whatever the device still has to say of it, memory is safe.
void VerbsTransport::give_up_on(Peer& peer) {
  connector_.fail(peer, fmt::format("it did not say within {} s that it will not touch memory that an operation was "
                                    "given up for: its connection is closed",
                                    verbs::kRevokeUs / 1'000'000));
  bury(peer);
  for (const auto& pair : peer.pairs) pair->retire_all([&](const verbs::Sent& sent) { outbox_.on_sent(sent); });
}

void VerbsTransport::forget(uint64_t channel) {
  cancelled_.erase(channel);
  outbox_.forget(channel, connector_.peers());
  receiver_.forget(channel, connector_.peers());
}

void VerbsTransport::disconnect(int rank) {
  Peer* const peer = connector_.peer(rank);
  if (peer == nullptr) return;
  peer->state.store(PeerState::failed, std::memory_order_relaxed);  // read by the owner, who calls this
  bury(*peer);
}

PeerFailure VerbsTransport::take_failure() { return connector_.take_failure(); }

bool VerbsTransport::waits_for(int rank) const {
  const Peer* const peer = connector_.peer(rank);
  return peer != nullptr && (receiver_.waits_for(*peer) || outbox_.waits_for(*peer));
}

bool VerbsTransport::has_heard(int rank, uint64_t channel, uint64_t first, uint64_t count) const {
  const Peer* const peer = connector_.peer(rank);
  return peer != nullptr && receiver_.has_heard(*peer, channel, first, count);
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

VerbsTransport::Moved VerbsTransport::moved() const {
  return {outbox_.direct_bytes(), outbox_.copied_bytes(), receiver_.direct_bytes(), receiver_.staged_bytes()};
}

}  // namespace tutti::internal
