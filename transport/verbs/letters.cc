#include "transport/verbs/letters.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/log.h"
#include "transport/verbs/claims.h"
#include "transport/verbs/way.h"

namespace tutti::internal::verbs {
namespace {

Remote remote_by(const Path& path, uint32_t pair_number, const Port& port, const Settings& settings) {
  Remote remote;
  remote.mtu = static_cast<ibv_mtu>(path.mtu);
  remote.pair_number = pair_number;
  remote.way = way_along(path, port, settings);
  return remote;
}

}  // namespace

Status Letters::ask(const Plan& plan, std::unique_lock<std::mutex>& lock) {
  TUTTI_RETURN_IF_ERROR(connections_.begin(plan));
  Letter hello;
  hello.kind = Letter::Kind::hello;
  hello.to_nonce = plan.address.nonce;
  hello.from_nonce = connections_.own().nonce;
  hello.credits = connections_.credits();
  const Attempt& attempt = connections_.attempt(plan.rank);
  for (size_t i = 0; i < plan.paths.size(); ++i) {
    const Path& path = plan.paths[i];
    hello.lines.push_back(
        {reversed(path, connections_.own().ports[static_cast<size_t>(path.own_port)]), attempt.pairs[i]->number()});
  }
  lock.unlock();
  mail_.send(plan.rank, hello.encode());
  lock.lock();
  return {};
}

void Letters::deliver(int rank, std::string_view bytes) {
  if (!connections_.is_rank(rank)) return;
  auto letter = Letter::decode(bytes);
  if (!letter || letter->to_nonce != connections_.own().nonce) {
    log_info("a letter of rank {} is not for this transport: dropped", rank);
    return;
  }
  Letter reply;
  bool has_reply = false;
  {
    const std::scoped_lock lock(connections_.mutex());
    switch (letter->kind) {
      case Letter::Kind::hello: has_reply = on_hello(rank, *letter, reply); break;
      case Letter::Kind::welcome: has_reply = on_welcome(rank, *letter, reply); break;
      case Letter::Kind::ready: on_ready(rank); break;
      case Letter::Kind::refuse: on_refuse(rank, *letter); break;
    }
  }
  connections_.changed().notify_all();
  if (!has_reply) return;
  reply.to_nonce = letter->from_nonce;
  reply.from_nonce = connections_.own().nonce;
  mail_.send(rank, reply.encode());
}

void Letters::end(int rank) {
  if (!connections_.is_rank(rank)) return;
  {
    const std::scoped_lock lock(connections_.mutex());
    Peer* const known = connections_.peer(rank);
    Attempt& attempt = connections_.attempt(rank);
    if (known != nullptr) {
      if (state_of(*known) == PeerState::accepting)
        connections_.fail(*known, "it was gone before its connection was complete");
    } else {
      attempt = {};
      attempt.refusal = Status::peer_failed(rank, fmt::format("rank {} is gone: it was never connected", rank));
    }
  }
  connections_.changed().notify_all();
}

bool Letters::on_hello(int rank, const Letter& hello, Letter& reply) {
  if (connections_.peer(rank) != nullptr) return false;
  Attempt& attempt = connections_.attempt(rank);
  if (attempt.stage == Attempt::Stage::asking && connections_.own().rank < rank) return false;  // ours is answered
  attempt = {};
  reply = answer(rank, hello);
  return true;
}

Letter Letters::answer(int rank, const Letter& hello) {
  Letter reply;
  reply.kind = Letter::Kind::refuse;
  std::vector<Path> paths;
  for (const Letter::Line& line : hello.lines) {
    if (line.path.own_port < 0 || static_cast<size_t>(line.path.own_port) >= connections_.port_count() ||
        line.path.mtu < kLeastMtu || line.path.mtu > kMostMtu) {
      reply.text = "a path to a port that does not exist";
      return reply;
    }
    paths.push_back(line.path);
  }
  if (paths.empty()) {
    reply.text = "no path";
    return reply;
  }
  auto pairs = connections_.make_pairs(paths);
  const Status connected = pairs ? connect_pairs(*pairs, paths, hello) : pairs.status();
  if (!connected.ok()) {
    reply.text = connected.message();
    return reply;
  }
  reply.kind = Letter::Kind::welcome;
  reply.credits = connections_.credits();
  for (size_t i = 0; i < pairs->size(); ++i) reply.lines.push_back({paths[i], (*pairs)[i]->number()});
  connections_.publish(rank, std::move(*pairs), PeerState::accepting);
  return reply;
}

bool Letters::on_welcome(int rank, const Letter& welcome, Letter& reply) {
  Attempt& attempt = connections_.attempt(rank);
  if (attempt.stage != Attempt::Stage::asking || welcome.from_nonce != attempt.nonce ||
      welcome.lines.size() != attempt.pairs.size())
    return false;
  const Status connected = connect_pairs(attempt.pairs, attempt.paths, welcome);
  reply.kind = connected.ok() ? Letter::Kind::ready : Letter::Kind::refuse;
  reply.text = connected.message();
  auto pairs = std::exchange(attempt, {}).pairs;
  if (connected.ok()) {
    connections_.publish(rank, std::move(pairs), PeerState::connected);
  } else {
    attempt.refusal = connected;
  }
  return true;
}

void Letters::on_ready(int rank) {
  if (Peer* const known = connections_.peer(rank)) connections_.set_connected(*known);
}

void Letters::on_refuse(int rank, const Letter& refuse) {
  const std::string text = fmt::format("rank {} refuses the connection: {}", rank, refuse.text);
  Attempt& attempt = connections_.attempt(rank);
  if (Peer* const known = connections_.peer(rank)) {
    connections_.fail(*known, text);
  } else if (attempt.stage == Attempt::Stage::asking) {
    attempt = {};
    attempt.refusal = Status(Code::unsupported, text);
  }
}

Status Letters::connect_pairs(std::span<const std::unique_ptr<QueuePair>> pairs, std::span<const Path> paths,
                              const Letter& letter) {
  const Settings& settings = connections_.settings();
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Port& port = pairs[i]->queues().port();
    TUTTI_RETURN_IF_ERROR(
        pairs[i]->connect(remote_by(paths[i], letter.lines[i].pair_number, port, settings), letter.credits, settings));
  }
  return {};
}

}  // namespace tutti::internal::verbs
