#include "transport/verbs/pinger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "src/base/log.h"
#include "transport/verbs/ping_message.h"
#include "transport/verbs/tuning.h"
#include "transport/verbs/way.h"

namespace tutti::internal::verbs {
namespace {

// So many more are sent to one who shall know that it was heard: some may be lost.
constexpr int kFarewells = 3;
// So often a path is tried at least, however many peers there are.
constexpr int64_t kLeastPings = 50;

// "rank 2's rxe0:1 (10.77.0.2)": the end of a path that has this GID, or LID.
std::string end_text(const Address& address, int port_index, int gid_index) {
  const PortAddress& port = address.ports[static_cast<size_t>(port_index)];
  const auto gid = std::ranges::find(port.gids, gid_index, &Gid::index);
  return fmt::format("rank {}'s {} ({})", address.rank, port.name,
                     gid_index >= 0 && gid != port.gids.end() ? short_text(gid->raw) : fmt::format("LID {}", port.lid));
}

// How the one with the lower rank sees them: then both ends have the same, in the same order.
std::vector<Path> common_paths(const Address& own, const Address& peer) {
  const bool is_lower = own.rank < peer.rank;
  auto paths = is_lower ? paths_between(own, peer, {}) : paths_between(peer, own, {});
  if (!paths) return {};
  if (!is_lower)
    for (Path& path : *paths) path = reversed(path, peer.ports[static_cast<size_t>(path.own_port)]);
  return std::move(*paths);
}

}  // namespace

std::unique_ptr<Pinger> Pinger::create(std::span<const std::unique_ptr<Port>> ports, Address& own,
                                       const Settings& settings) {
  std::unique_ptr<Pinger> pinger(new Pinger(settings));
  for (size_t i = 0; i < ports.size(); ++i) {
    auto queue = PingQueue::create(*ports[i]);
    if (!queue)
      log_info("{} is used without a try whether packets come through: {}", ports[i]->name(), queue.status().message());
    pinger->queues_.push_back(queue ? std::move(*queue) : nullptr);
    own.ports[i].ping_pair = pinger->queues_[i] ? pinger->queues_[i]->number() : 0;
  }
  pinger->own_ = own;
  return pinger;
}

std::string Pinger::why_untried(const Track& track, const Address& peer, bool by_cm) const {
  const PortAddress& own_port = own_.ports[static_cast<size_t>(track.path.own_port)];
  const PortAddress& peer_port = peer.ports[static_cast<size_t>(track.path.peer_port)];
  if (own_port.is_infiniband && by_cm) return "only rdma_cm finds the way";
  for (const auto& [address, port] : {std::pair(&own_, &own_port), std::pair(&peer, &peer_port)})
    if (port->ping_pair == 0) return fmt::format("rank {}'s {} has no queue for it", address->rank, port->name);
  return "";
}

Pinger::Target Pinger::target_of(const Peer& peer) const {
  Target target;
  auto address = Address::decode(peer.address);
  if (!address || address->rank != peer.rank) {
    target.trouble = address ? "its address is of another rank" : address.status().message();
    return target;
  }
  target.address = std::move(*address);
  const std::vector<Path> paths = common_paths(own_, target.address);
  const bool by_cm = by_rdmacm(own_, target.address, paths);
  for (const Path& path : paths) {
    Track& track = target.tracks.emplace_back();
    track.number = static_cast<int>(target.tracks.size()) - 1;
    track.path = path;
    track.pair_number = target.address.ports[static_cast<size_t>(path.peer_port)].ping_pair;
    track.untried = why_untried(track, target.address, by_cm);
  }
  return target;
}

void Pinger::prepare(Target& target) {
  for (Track& track : target.tracks) {
    if (!track.is_tried()) continue;
    const Port& port = queue(track).port();
    ibv_ah_attr way = way_along(track.path, port, settings_);
    // On RoCE this asks the network for the other's hardware address.
    track.handle.reset(ibv_create_ah(port.domain(), &way));
    if (!track.handle)
      track.refusal =
          Status::system(Code::unsupported, fmt::format("no way there (ibv_create_ah) on {}", port.name()), errno)
              .message();
  }
}

std::vector<Hearing> Pinger::probe(std::span<const Peer> peers, Deadline deadline) {
  const auto count = static_cast<int64_t>(peers.size());
  every_us_ = std::max(kPingEveryUs, count * kPingEveryPeerUs);
  limit_us_ = std::max(kPingLimitUs, every_us_ * kLeastPings);
  for (const Peer& peer : peers) {
    target_of_rank_.emplace(peer.rank, targets_.size());
    prepare(targets_.emplace_back(target_of(peer)));
  }
  // The ways are found: from here on all are tried at once.
  const Deadline until = std::min(deadline, Deadline::after_us(limit_us_));
  for (;;) {
    const bool has_come = take();
    for (Target& target : targets_) send_due(target);
    if (is_done() || until.passed()) return hearings();
    if (!has_come) std::this_thread::sleep_for(std::chrono::microseconds(kPingLookUs));
  }
}

std::vector<Hearing> Pinger::listen() {
  while (take()) {
  }
  return hearings();
}

bool Pinger::is_done() const {
  return std::ranges::all_of(targets_,
                             [](const Target& target) { return std::ranges::all_of(target.tracks, &Track::is_done); });
}

bool Pinger::take() {
  bool has_come = false;
  for (size_t port = 0; port < queues_.size(); ++port)
    if (queues_[port]) has_come |= queues_[port]->take([&](std::span<const std::byte> bytes) { on_ping(port, bytes); });
  return has_come;
}

// Whatever else comes is not for us.
void Pinger::on_ping(size_t port, std::span<const std::byte> bytes) {
  const auto message = PingMessage::decode(bytes);
  if (!message || message->to_nonce != own_.nonce) return;
  const auto found = target_of_rank_.find(message->rank);
  if (found == target_of_rank_.end()) return;
  std::vector<Track>& tracks = targets_[found->second].tracks;
  if (static_cast<size_t>(message->path) >= tracks.size()) return;
  Track& track = tracks[static_cast<size_t>(message->path)];
  if (!track.is_tried() || static_cast<size_t>(track.path.own_port) != port ||
      bytes.size() != mtu_bytes(track.path.mtu))
    return;
  if (!track.has_heard || !message->has_heard) track.more = std::max(track.more, 1);
  track.has_heard = true;
  if (message->has_heard && !track.is_heard) track.more = kFarewells;
  track.is_heard |= message->has_heard;
}

void Pinger::send_due(Target& target) {
  const int64_t now = now_us();
  for (Track& track : target.tracks) {
    if (!track.is_tried() || !track.handle) continue;
    const bool is_settled = track.has_heard && track.is_heard;
    if (!is_settled && now >= track.due_us) {
      track.due_us = now + every_us_;
      track.more = std::max(track.more, 1);
    }
    const size_t length = mtu_bytes(track.path.mtu);
    for (; track.more > 0; --track.more) {
      const std::span<std::byte> room = queue(track).room();
      if (room.size() < length) break;
      PingMessage{
          .to_nonce = target.address.nonce, .rank = own_.rank, .path = track.number, .has_heard = track.has_heard}
          .encode(room.first(length));
      const Status sent = queue(track).send(track.handle.get(), track.pair_number, length);
      track.refusal = sent.message();
    }
  }
}

std::vector<Hearing> Pinger::hearings() const {
  std::vector<Hearing> result;
  for (const Target& target : targets_) result.push_back(hearing_of(target));
  return result;
}

Hearing Pinger::hearing_of(const Target& target) const {
  Hearing hearing;
  hearing.untried = target.trouble;
  std::vector<std::string> silent, refusals;
  for (const Track& track : target.tracks) {
    const uint32_t bit = 1U << track.number;
    hearing.paths |= bit;
    if (!track.is_tried()) hearing.untried = track.untried;
    if (!track.is_tried()) continue;
    hearing.tried |= bit;
    if (!track.refusal.empty()) refusals.push_back(track.refusal);
    if (track.has_heard) {
      hearing.heard |= bit;
      continue;
    }
    silent.push_back(fmt::format("from {} to {}", end_text(target.address, track.path.peer_port, track.path.peer_gid),
                                 end_text(own_, track.path.own_port, track.path.own_gid)));
  }
  if (!silent.empty()) {
    const Path& path = target.tracks.front().path;
    const bool is_infiniband = own_.ports[static_cast<size_t>(path.own_port)].is_infiniband;
    hearing.trouble = fmt::format("no packet of {} bytes came through {} within {:.1f} s (look at {})",
                                  mtu_bytes(path.mtu), fmt::join(silent, ", "), static_cast<double>(limit_us_) / 1e6,
                                  is_infiniband ? "the subnet manager, partitions and MTU"
                                                : "the switches: VLAN, PFC, MTU; firewalls: UDP port 4791");
  }
  if (!refusals.empty())
    hearing.trouble += fmt::format("{}rank {} could not send: {}", hearing.trouble.empty() ? "" : "; ", own_.rank,
                                   fmt::join(refusals, ", "));
  return hearing;
}

}  // namespace tutti::internal::verbs
