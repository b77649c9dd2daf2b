#include "src/core/offering.h"

#include <fmt/core.h>

#include <algorithm>

#include "src/base/log.h"
#include "src/core/ib_settings.h"
#include "src/core/store/interfaces.h"
#include "topology/locality.h"
#include "transport/shm/shm_transport.h"
#include "transport/ucx/configuration.h"
#include "transport/ucx/ucx_transport.h"
#include "transport/verbs/verbs_transport.h"

namespace tutti::internal {
namespace {

// The first byte of what a rank publishes.
constexpr char kHardware = 'h', kSoftware = 's', kNone = '-', kRefused = '!';

// The system's number of the node where this rank's memory shall lie; -1: there is no choice.
int numa_node_of(const Machine& machine, const RankPlace& own) {
  const bool is_near_one = machine.is_this_host && machine.numa_nodes.size() > 1 && own.numa >= 0;
  return is_near_one ? machine.numa_nodes[static_cast<size_t>(own.numa)].os_index : -1;
}

// RDMA devices, the nearest first.
std::vector<std::string> near_devices(const Machine& machine, const RankPlace& own) {
  std::vector<std::string> names;
  if (!machine.is_this_host || own.core < 0) return names;
  const Anchor anchor{Anchor::Kind::core, own.core};
  for (const Candidate& candidate : rank_nics(machine, anchor, NicUse::rdma))
    names.push_back(machine.nics[static_cast<size_t>(candidate.nic)].rdma);
  return names;
}

bool is_emulated(const Machine& machine, const std::vector<std::string>& devices) {
  return std::ranges::any_of(machine.nics, [&](const Nic& nic) {
    return nic.pci.empty() && std::ranges::find(devices, nic.rdma) != devices.end();
  });
}

}  // namespace

Result<Offering> Offering::publish(Session& session, Carrier carrier, Result<std::unique_ptr<Transport>> transport,
                                   bool is_software, Deadline deadline) {
  Offering offering;
  offering.carrier_ = carrier;
  // Whoever has asked for what is not there shall hear it, and not get something else.
  const Status own = transport.status();
  std::string text = (own.code() == Code::invalid_argument ? kRefused : kNone) + own.message();
  if (transport) {
    offering.transport_ = std::move(*transport);
    text = (is_software ? kSoftware : kHardware) + offering.transport_->address();
  }
  auto texts = session.exchange(name(carrier), std::move(text), deadline);
  if (!texts) return texts.status();
  if (own.code() == Code::invalid_argument) return own;
  for (const std::string& published : *texts) {
    const char kind = published.empty() ? kNone : published.front();
    std::string rest = published.substr(std::min<size_t>(published.size(), 1));
    if (kind == kRefused)
      return Status(Code::invalid_argument, fmt::format("rank {}: {}", offering.ranks_.size(), rest));
    Rank& rank = offering.ranks_.emplace_back();
    rank.is_usable = kind == kHardware || kind == kSoftware;
    rank.is_software = kind == kSoftware;
    std::string& address = offering.addresses_.emplace_back();
    (rank.is_usable ? address : rank.why_not) = std::move(rest);
  }
  return offering;
}

Status Offering::compare_routes(Session& session, Deadline deadline) {
  std::string row(ranks_.size(), '1'), obstacle;
  for (size_t peer = 0; peer < ranks_.size() && transport_; ++peer) {
    if (static_cast<int>(peer) == session.rank() || !ranks_[peer].is_usable) continue;
    const Status reachable = transport_->reachable(addresses_[peer]);
    if (reachable.ok()) continue;
    row[peer] = '0';
    if (obstacle.empty()) obstacle = reachable.message();
  }
  auto rows = session.exchange(fmt::format("{} routes", name(carrier_)), row + obstacle, deadline);
  if (!rows) return rows.status();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::string& published = (*rows)[rank];
    if (published.size() < ranks_.size())
      return Status(Code::mismatch, fmt::format("what rank {} says of its routes is not of this version's form", rank));
    ranks_[rank].route_to = published.substr(0, ranks_.size());
    ranks_[rank].obstacle = published.substr(ranks_.size());
  }
  return {};
}

Status Offering::try_packets(Session& session, std::vector<int> node_of, Deadline deadline) {
  node_of_ = std::move(node_of);
  const int64_t begun_us = now_us();
  const auto prober = transport_ ? transport_->take_prober() : nullptr;
  const auto all = delegates(node_of_, [this](int one, int other) { return is_joined(one, other); });
  if (all.empty()) return {};
  std::vector<Prober::Peer> peers;
  for (const auto& [lower, upper] : all) {
    if (lower != session.rank() && upper != session.rank()) continue;
    const int peer = lower == session.rank() ? upper : lower;
    peers.push_back({peer, addresses_[static_cast<size_t>(peer)]});
  }
  const auto by_rank = [&](std::vector<Hearing> heard) {
    Hearings hearings;
    for (size_t i = 0; i < heard.size(); ++i) hearings[peers[i].rank] = std::move(heard[i]);
    return hearings;
  };
  Hearings own;
  if (prober && !peers.empty()) own = by_rank(prober->probe(peers, deadline));
  auto heard = tell(session, "packets", own, deadline);
  if (!heard) return heard.status();
  // A rank may have begun after another had given up. Now all have sent: what comes through is there.
  if (std::ranges::any_of(*heard, misses_any)) {
    if (prober && !peers.empty()) own = by_rank(prober->listen());
    heard = tell(session, "late packets", own, deadline);
    if (!heard) return heard.status();
  }
  for (const Delegates& two : all) conclude(two, *heard, session.rank());
  if (!peers.empty())
    log_info("{}: packets to and from {} ranks were tried within {:.1f} ms", name(carrier_), peers.size(),
             static_cast<double>(now_us() - begun_us) / 1e3);
  return {};
}

// What every rank has heard, by rank.
Result<std::vector<Hearings>> Offering::tell(Session& session, std::string_view key, const Hearings& own,
                                             Deadline deadline) {
  auto texts = session.exchange(fmt::format("{} {}", name(carrier_), key), encode(own), deadline);
  if (!texts) return texts.status();
  std::vector<Hearings> heard;
  for (const std::string& text : *texts) {
    auto hearings = decode_hearings(text);
    if (!hearings)
      return Status(Code::mismatch,
                    fmt::format("what rank {} says of packets is {}", heard.size(), hearings.status().message()));
    heard.push_back(std::move(*hearings));
  }
  return heard;
}

void Offering::conclude(const Delegates& two, const std::vector<Hearings>& heard, int own) {
  const auto hearing = [&](int rank, int of) {
    const Hearings& all = heard[static_cast<size_t>(rank)];
    const auto found = all.find(of);
    return found == all.end() ? Hearing{} : found->second;
  };
  const Trial trial = trial_of(hearing(two.lower, two.upper), hearing(two.upper, two.lower));
  if (!trial.why.empty()) (trial.is_broken ? broken_ : doubtful_)[nodes(two.lower, two.upper)] = trial.why;
  if (!trial.silent.empty() && two.lower == own)
    log_warn("{} to rank {} is used, though not all of its paths work: {}", name(carrier_), two.upper, trial.silent);
}

std::string Offering::why_not(int one, int other) const {
  for (const int rank : {one, other})
    if (!at(rank).is_usable) return fmt::format("rank {} has none: {}", rank, at(rank).why_not);
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)})
    if (!finds_route(from, to)) return fmt::format("rank {} finds no route: {}", from, at(from).obstacle);
  if (broken_.empty()) return "";
  const auto broken = broken_.find(nodes(one, other));
  return broken == broken_.end() ? "" : broken->second;
}

std::string Offering::doubt(int one, int other) const {
  if (doubtful_.empty()) return "";
  const auto doubtful = doubtful_.find(nodes(one, other));
  return doubtful == doubtful_.end() ? "" : doubtful->second;
}

MadeVerbs make_verbs(const Session& session, const Config& config, const Machine& machine, Mail& mail,
                     const RankPlace& own) {
  VerbsTransport::Options options;
  options.rank = session.rank();
  options.world_size = session.size();
  options.numa_node = numa_node_of(machine, own);
  options.preferred = near_devices(machine, own);
  options.settings = ib_settings(config);
  auto made = VerbsTransport::create(options, mail);
  if (!made) return {made.status()};
  const bool is_software = is_emulated(machine, (*made)->devices());
  return {std::unique_ptr<Transport>(std::move(*made)), is_software};
}

Result<std::unique_ptr<Transport>> make_ucx(const Session& session, const Config& config, const Machine& machine,
                                            Mail& mail, const RankPlace& own, bool avoids_rdma) {
  UcxTransport::Options options{.rank = session.rank(),
                                .world_size = session.size(),
                                .numa_node = numa_node_of(machine, own),
                                .settings = avoids_rdma ? ucx::without_rdma() : ucx::Settings{}};
  auto choice = InterfaceChoice::parse(config.interfaces());
  if (!choice) return choice.status();
  if (!choice->is_all()) {
    auto interfaces = chosen_interfaces(*choice);
    if (!interfaces) return interfaces.status();
    options.interfaces = std::move(*interfaces);
  }
  auto made = UcxTransport::create(options, mail);
  if (!made) return made.status();
  return std::unique_ptr<Transport>(std::move(*made));
}

Result<std::unique_ptr<Transport>> make_shm(const Session& session, const Machine& machine, const RankPlace& own) {
  auto made = ShmTransport::create(
      {.rank = session.rank(), .world_size = session.size(), .numa_node = numa_node_of(machine, own)});
  if (!made) return made.status();
  return std::unique_ptr<Transport>(std::move(*made));
}

}  // namespace tutti::internal
