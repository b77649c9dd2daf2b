#include "transport/verbs/verbs_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "src/base/log.h"
#include "transport/verbs/tuning.h"
#include "transport/verbs/wire.h"

namespace tutti::internal {

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
  watches.push_back({connector_.failures().wake_fd(), ports_.size() + 1});
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

PeerFailure VerbsTransport::take_failure() { return connector_.failures().take(); }

bool VerbsTransport::waits_for(int rank) const {
  const Peer* const peer = connector_.peer(rank);
  return peer != nullptr && (receiver_.waits_for(*peer) || outbox_.waits_for(*peer));
}

bool VerbsTransport::has_heard(int rank, uint64_t channel, uint64_t first, uint64_t count) const {
  const Peer* const peer = connector_.peer(rank);
  return peer != nullptr && receiver_.has_heard(*peer, channel, first, count);
}

VerbsTransport::Moved VerbsTransport::moved() const {
  return {outbox_.direct_bytes(), outbox_.copied_bytes(), receiver_.direct_bytes(), receiver_.staged_bytes()};
}

}  // namespace tutti::internal
