#include "transport/verbs/cm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/log.h"

namespace tutti::internal::verbs {
namespace {

using Stage = Attempt::Stage;

// Addresses and routes are asked for once in so long at most.
constexpr int kMostResolveMs = 30'000;
// Before another attempt: in general, and where the other end's own should come first.
constexpr int64_t kPauseUs = 20'000;
constexpr int64_t kCrossedPauseUs = 500'000;

// Reasons of a rejection, as the InfiniBand specification numbers them (table "REJ reason").
constexpr int kNobodyListens = 8;  // invalid service id
constexpr int kStaleConnection = 10;
constexpr int kByConsumer = 28;

int resolve_ms(const Deadline& deadline) { return std::max(deadline.poll_ms(kMostResolveMs), 1); }

std::string_view action(rdma_cm_event_type kind) {
  switch (kind) {
    case RDMA_CM_EVENT_ADDR_ERROR: return "its address is not found";
    case RDMA_CM_EVENT_ROUTE_ERROR: return "there is no route to it";
    case RDMA_CM_EVENT_UNREACHABLE: return "it does not answer";
    default: return "the connection is not made";
  }
}

rdma_conn_param parameters(const std::string& private_data, uint32_t pair_number, const Settings& settings) {
  rdma_conn_param result{};
  result.private_data = private_data.data();
  result.private_data_len = static_cast<uint8_t>(private_data.size());
  result.retry_count = static_cast<uint8_t>(settings.retry_count);
  result.rnr_retry_count = static_cast<uint8_t>(settings.rnr_retry);
  result.srq = 1;
  result.qp_num = pair_number;
  return result;
}

void reject(CmId& id, const CmRejection& rejection) {
  const std::string bytes = rejection.encode();
  rdma_reject(id.get(), bytes.data(), static_cast<uint8_t>(bytes.size()));  // where it fails the other end times out
  id.reset();
}

}  // namespace

Cm::Cm(Connections& connections, std::unique_ptr<Listeners> listeners)
    : connections_(connections), listeners_(std::move(listeners)), wires_(connections.world_size()) {}

Cm::Wire& Cm::renew(int rank) {
  Wire& renewed = wire(rank);
  renewed = {.generation = (renewed.generation + 1) & CmName::kMostGenerations};
  return renewed;
}

Cm::Line* Cm::find(const CmName& name) {
  if (!connections_.is_rank(name.rank)) return nullptr;
  Wire& found = wire(name.rank);
  if (found.generation != name.generation || name.index >= found.lines.size()) return nullptr;
  Line& line = found.lines[name.index];
  return line.id ? &line : nullptr;
}

std::string Cm::describe(const CmName& name) {
  const Wire& found = wire(name.rank);
  const Attempt& attempt = connections_.attempt(name.rank);
  const int port = name.index < attempt.paths.size() ? attempt.paths[name.index].own_port : -1;
  const std::string own = port < 0 ? "" : connections_.queues(port).port().name() + ": ";
  const std::string to = name.index < found.to.size() ? " at " + to_string(found.to[name.index]) : "";
  return fmt::format("{}rdma_cm to rank {}{}", own, name.rank, to);
}

void Cm::give_up(int rank, const Status& why) {
  renew(rank);
  if (Peer* const peer = connections_.peer(rank)) return connections_.fail(*peer, why.message());
  connections_.attempt(rank) = {};
  connections_.attempt(rank).refusal = why;
}

void Cm::try_again(int rank, const std::string& why, int64_t pause_us) {
  renew(rank);
  if (Peer* const peer = connections_.peer(rank)) return connections_.fail(*peer, why);
  Attempt& attempt = connections_.attempt(rank);
  log_debug("{}: another attempt will follow", why);
  attempt.stage = Stage::none;
  attempt.trouble = why;
  attempt.pause = Deadline::after_us(pause_us);
}

Status Cm::ask(const Plan& plan, std::unique_lock<std::mutex>&) {
  TUTTI_RETURN_IF_ERROR(connections_.begin(plan));
  Wire& begun = renew(plan.rank);
  begun.is_ours = true;
  begun.deadline = plan.deadline;
  for (const Path& path : plan.paths) {
    begun.to.push_back(plan.address.ports[static_cast<size_t>(path.peer_port)].listener);
    const auto index = static_cast<uint8_t>(begun.lines.size());
    auto id = start({.rank = plan.rank, .generation = begun.generation, .index = index}, plan, path);
    if (!id) {
      const Status why(id.status().code(), fmt::format("rdma_cm to rank {}: {}", plan.rank, id.status().message()));
      renew(plan.rank);
      connections_.attempt(plan.rank) = {};
      return why;
    }
    begun.lines.push_back({std::move(*id)});
  }
  return {};
}

Result<CmId> Cm::start(const CmName& name, const Plan& plan, const Path& path) const {
  auto id = listeners_->channel().make_id(name);
  if (!id) return id.status();
  const PortAddress& own = connections_.own().ports[static_cast<size_t>(path.own_port)];
  const Listener& peer = plan.address.ports[static_cast<size_t>(path.peer_port)].listener;
  auto traffic_class = static_cast<uint8_t>(connections_.settings().traffic_class);
  if (traffic_class != 0 &&
      rdma_set_option(id->get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, sizeof traffic_class) != 0)
    return Status::system(Code::unsupported, fmt::format("{}: setting TUTTI_IB_TRAFFIC_CLASS", own.name), errno);
  sockaddr_storage from = socket_address(own.listener.ip, 0);
  sockaddr_storage to = socket_address(peer.ip, peer.port);
  if (rdma_resolve_addr(id->get(), reinterpret_cast<sockaddr*>(&from), reinterpret_cast<sockaddr*>(&to),
                        resolve_ms(plan.deadline)) != 0)
    return Status::system(Code::unsupported, fmt::format("{}: rdma_resolve_addr of {}", own.name, to_string(peer)),
                          errno);
  return id;
}

void Cm::serve() {
  for (CmEvent event; listeners_->channel().take(event);) {
    {
      const std::scoped_lock lock(connections_.mutex());
      handle(event);
    }
    connections_.changed().notify_all();
  }
}

void Cm::handle(CmEvent& event) {
  const CmName& name = event.name;
  if (event.kind == RDMA_CM_EVENT_CONNECT_REQUEST) return on_request(event);
  if (name.rank < 0) {
    if (event.kind != RDMA_CM_EVENT_DEVICE_REMOVAL) return;
    log_warn("{} was removed: nobody can connect to it any more", connections_.queues(name.index).port().name());
    return listeners_->close(name.index);
  }
  Line* const line = find(name);
  if (line == nullptr) return;  // of an attempt that is over
  switch (event.kind) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: return on_address(name, *line);
    case RDMA_CM_EVENT_ROUTE_RESOLVED: return on_route(name, *line);
    case RDMA_CM_EVENT_CONNECT_RESPONSE: return on_answer(name, *line, event);
    case RDMA_CM_EVENT_ESTABLISHED: return on_established(name, *line);
    case RDMA_CM_EVENT_DISCONNECTED: return on_disconnected(name, *line);
    case RDMA_CM_EVENT_REJECTED: return on_rejected(name, event);
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE: return on_trouble(name, event);
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return on_removal(name);
    default: return;
  }
}

void Cm::on_address(const CmName& name, Line& line) {
  const Port& port = connections_.queues(connections_.attempt(name.rank).paths[name.index].own_port).port();
  if (!is_bound_to(*line.id, port.device(), port.number()))
    return give_up(name.rank, Status(Code::unsupported, describe(name) + ": its address is reached by another port"));
  if (rdma_resolve_route(line.id.get(), resolve_ms(wire(name.rank).deadline)) != 0)
    give_up(name.rank, Status::system(Code::unsupported, describe(name) + ": rdma_resolve_route", errno));
}

void Cm::on_route(const CmName& name, Line& line) {
  Attempt& attempt = connections_.attempt(name.rank);
  Path& path = attempt.paths[name.index];
  const rdma_route& route = line.id->route;
  if (route.num_paths > 0 && route.path_rec->mtu != 0) path.mtu = std::min(path.mtu, route.path_rec->mtu);
  const std::string request = CmRequest{.rank = connections_.own().rank,
                                        .to_nonce = attempt.nonce,
                                        .from_nonce = connections_.own().nonce,
                                        .attempt = name.generation,
                                        .credits = connections_.credits(),
                                        .path = name.index,
                                        .path_count = static_cast<int>(attempt.paths.size()),
                                        .mtu = path.mtu}
                                  .encode();
  rdma_conn_param asked = parameters(request, attempt.pairs[name.index]->number(), connections_.settings());
  if (rdma_connect(line.id.get(), &asked) != 0)
    give_up(name.rank, Status::system(Code::unsupported, describe(name) + ": rdma_connect", errno));
}

void Cm::on_answer(const CmName& name, Line& line, const CmEvent& event) {
  Attempt& attempt = connections_.attempt(name.rank);
  const auto answer = CmAnswer::decode(event.private_data);
  if (!answer)
    return give_up(name.rank,
                   Status(Code::unsupported, describe(name) + ": what answers is not tutti of this version"));
  const Status status =
      connect_pair(*line.id, *attempt.pairs[name.index], attempt.paths[name.index].mtu, answer->credits);
  if (!status.ok())
    return give_up(name.rank, Status(status.code(), fmt::format("{}: {}", describe(name), status.message())));
  line.done = true;
  Wire& answered = wire(name.rank);
  if (!std::ranges::all_of(answered.lines, &Line::done)) return;
  // First published: what the peer sends may be there as soon as it knows.
  connections_.publish(name.rank, std::exchange(attempt, {}).pairs, PeerState::connected);
  for (const Line& one : answered.lines)
    if (rdma_establish(one.id.get()) != 0)
      return give_up(name.rank, Status::system(Code::unsupported, describe(name) + ": rdma_establish", errno));
}

CmRejection Cm::check(const CmRequest& request, int port, const rdma_cm_id& id) const {
  using Why = CmRejection::Kind;
  const int own_rank = connections_.own().rank;
  if (request.to_nonce != connections_.own().nonce || !connections_.is_rank(request.rank) || request.rank == own_rank)
    return {Why::foreign, "the transport that is asked for is not here: it has ended, or is of another job"};
  if (const Peer* const known = connections_.peer(request.rank))
    return state_of(*known) == PeerState::failed ? CmRejection{Why::refused, "the connection is closed"}
                                                 : CmRejection{Why::crossed, "it is connected"};
  if (connections_.attempt(request.rank).stage == Stage::asking && own_rank < request.rank)
    return {Why::crossed, "both ends ask, and the lower rank goes on"};
  const Port& asked = connections_.queues(port).port();
  if (!is_bound_to(id, asked.device(), asked.number()))
    return {Why::refused, fmt::format("the request came to another port than {}", asked.name())};
  return {};
}

void Cm::on_request(CmEvent& event) {
  const int port = event.name.index;
  const auto request = CmRequest::decode(event.private_data);
  const CmRejection rejection = request
                                    ? check(*request, port, *event.request)
                                    : CmRejection{CmRejection::Kind::foreign, "not a request of this version of tutti"};
  if (rejection.kind != CmRejection::Kind{}) {
    if (rejection.kind == CmRejection::Kind::foreign)
      log_info("{}: a request to connect is rejected: {}", connections_.queues(port).port().name(), rejection.text);
    return reject(event.request, rejection);
  }
  const int rank = request->rank;
  Attempt& attempt = connections_.attempt(rank);
  const Wire& known = wire(rank);
  if (attempt.stage != Stage::answering || attempt.nonce != request->from_nonce || known.asked_as != request->attempt ||
      known.lines.size() != static_cast<size_t>(request->path_count)) {
    // The first of a new attempt. Our own, if any, is dropped, as are what is left of older ones.
    attempt = {};
    attempt.stage = Stage::answering;
    attempt.nonce = request->from_nonce;
    attempt.pairs.resize(static_cast<size_t>(request->path_count));
    Wire& begun = renew(rank);
    begun.asked_as = request->attempt;
    begun.lines.resize(static_cast<size_t>(request->path_count));
  }
  const CmName name{.rank = rank, .generation = wire(rank).generation, .index = static_cast<uint8_t>(request->path)};
  const Status status = accept(name, *request, port, event.request);
  if (status.ok()) return;
  reject(event.request, {CmRejection::Kind::refused, status.message()});
  log_info("rank {} asks for a connection by rdma_cm, which fails: {}", rank, status.message());
  if (Peer* const peer = connections_.peer(rank)) connections_.fail(*peer, status.message());
  renew(rank);
  attempt = {};
}

Status Cm::accept(const CmName& name, const CmRequest& request, int port, CmId& id) {
  Attempt& attempt = connections_.attempt(name.rank);
  if (attempt.pairs[name.index] != nullptr)
    return Status(Code::internal, fmt::format("path {} is asked for twice", name.index));
  auto pair = QueuePair::create(connections_.queues(port), port);
  if (!pair) return pair.status();
  TUTTI_RETURN_IF_ERROR(connect_pair(*id, **pair, request.mtu, request.credits));
  const uint32_t pair_number = (*pair)->number();
  attempt.pairs[name.index] = std::move(*pair);
  // First published: who has been accepted on all paths sends.
  if (std::ranges::none_of(attempt.pairs, [](const auto& one) { return one == nullptr; }))
    connections_.publish(name.rank, std::exchange(attempt, {}).pairs, PeerState::accepting);
  id->context = name.pack();
  const std::string answer = CmAnswer{.credits = connections_.credits()}.encode();
  rdma_conn_param accepted = parameters(answer, pair_number, connections_.settings());
  if (rdma_accept(id.get(), &accepted) != 0) return Status::system(Code::unsupported, "rdma_accept", errno);
  wire(name.rank).lines[name.index].id = std::move(id);
  return {};
}

// What rdma_cm knows of the other end's queue pair. All else is as without it.
Status Cm::connect_pair(rdma_cm_id& id, QueuePair& pair, uint8_t mtu, uint32_t credits) const {
  Remote remote;
  remote.mtu = static_cast<ibv_mtu>(mtu);
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = state;
    if (rdma_init_qp_attr(&id, &attributes, &mask) != 0)
      return Status::system(Code::unsupported, "rdma_init_qp_attr", errno);
    if (state == IBV_QPS_INIT) {
      remote.pkey_index = attributes.pkey_index;
    } else if (state == IBV_QPS_RTR) {
      remote.way = attributes.ah_attr;
      remote.pair_number = attributes.dest_qp_num;
      remote.its_packet_number = attributes.rq_psn;
    } else {
      remote.own_packet_number = attributes.sq_psn;
    }
  }
  const Settings& settings = connections_.settings();
  if (settings.service_level != 0) remote.way.sl = static_cast<uint8_t>(settings.service_level);
  return pair.connect(remote, credits, settings);
}

void Cm::on_established(const CmName& name, Line& line) {
  line.done = true;
  Peer* const peer = connections_.peer(name.rank);
  if (peer != nullptr && std::ranges::all_of(wire(name.rank).lines, &Line::done)) connections_.set_connected(*peer);
}

void Cm::on_disconnected(const CmName& name, Line& line) {
  line.id.reset();  // which answers, too
  if (Peer* const peer = connections_.peer(name.rank)) {
    peer->hung_up.store(true, std::memory_order_relaxed);  // the owner looks for a goodbye first
    peer->raise_alarm();
  } else {
    try_again(name.rank, describe(name) + ": it has closed the connection", kPauseUs);
  }
}

void Cm::on_rejected(const CmName& name, const CmEvent& event) {
  const int rank = name.rank;
  if (!wire(rank).is_ours) {
    // The asking rank has changed its mind.
    if (Peer* const peer = connections_.peer(rank))
      connections_.fail(*peer, "it has given the connection up");
    else
      connections_.attempt(rank) = {};
    renew(rank);
    return;
  }
  const std::string who = describe(name);
  if (event.status == kNobodyListens)
    return give_up(rank, Status::peer_failed(rank, who + ": nobody listens there any more"));
  if (event.status == kStaleConnection) return try_again(rank, who + ": a new number is needed", kPauseUs);
  const auto rejection = CmRejection::decode(event.private_data);
  if (event.status != kByConsumer)
    return give_up(rank, Status(Code::unsupported, fmt::format("{}: rejected with reason {}", who, event.status)));
  if (!rejection) return try_again(rank, who + ": rejected without a reason: too many requests at once", kPauseUs);
  const std::string text = fmt::format("{}: rejected: {}", who, rejection->text);
  switch (rejection->kind) {
    case CmRejection::Kind::crossed: return try_again(rank, text, kCrossedPauseUs);
    case CmRejection::Kind::foreign: return give_up(rank, Status::peer_failed(rank, text));
    case CmRejection::Kind::refused: return give_up(rank, Status(Code::unsupported, text));
  }
}

void Cm::on_trouble(const CmName& name, const CmEvent& event) {
  const Status why =
      event.status < 0
          ? Status::system(Code::unsupported, fmt::format("{}: {}", describe(name), action(event.kind)), -event.status)
          : Status(Code::unsupported,
                   fmt::format("{}: {} (status {})", describe(name), action(event.kind), event.status));
  if (event.status == -ETIMEDOUT) return try_again(name.rank, why.message(), kPauseUs);
  give_up(name.rank, why);
}

void Cm::on_removal(const CmName& name) {
  give_up(name.rank, Status(Code::unsupported, describe(name) + ": its device was removed"));
}

}  // namespace tutti::internal::verbs
