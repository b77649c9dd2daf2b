#include "src/core/transports.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "src/base/log.h"
#include "src/core/offering.h"
#include "src/core/trace.h"
#include "transport/routed_transport.h"

namespace tutti::internal {
namespace {

constexpr Carrier kCarriers[] = {Carrier::shm, Carrier::verbs, Carrier::ucx};

// Finds for each two ranks the first carrier that connects them.
class Choosing {
 public:
  Choosing(Session& session, const Config& config, const Machine& machine, Mail& mail, Deadline deadline)
      : session_(session), config_(config), machine_(machine), mail_(mail), deadline_(deadline) {}

  Result<Connections> run(RankPlace own) {
    TUTTI_RETURN_IF_ERROR(find_nodes(std::move(own)));
    if (allows(Carrier::verbs) && first_unconnected()) {
      MadeVerbs made = make_verbs(session_, config_, machine_, mail_, place());
      TUTTI_RETURN_IF_ERROR(offer(Carrier::verbs, std::move(made.transport), made.is_software));
      TUTTI_RETURN_IF_ERROR(offering(Carrier::verbs)->compare_routes(session_, deadline_));
      TUTTI_RETURN_IF_ERROR(offering(Carrier::verbs)->try_packets(session_, nodes(), deadline_));
    }
    if (allows(Carrier::ucx) && first_unconnected()) {
      // What stops the packets of verbs would stop those of UCX on the same devices.
      const auto& verbs = offering(Carrier::verbs);
      const bool avoids_rdma = verbs && verbs->has_broken_ways();
      TUTTI_RETURN_IF_ERROR(
          offer(Carrier::ucx, make_ucx(session_, config_, machine_, mail_, place(), avoids_rdma), false));
    }
    if (const auto pair = first_unconnected())
      return Status(Code::unsupported,
                    fmt::format("ranks {} ({}) and {} ({}) cannot exchange messages: {}", pair->one, host(pair->one),
                                pair->other, host(pair->other), obstacles(pair->one, pair->other)));
    return connections();
  }

 private:
  struct Pair {
    int one, other;
  };

  // Ranks of one node are those that can share memory, also where they may not.
  Status find_nodes(RankPlace own) {
    auto made = make_shm(session_, machine_, own);
    if (!made) return made.status();
    TUTTI_RETURN_IF_ERROR(offer(Carrier::shm, std::move(*made), false));
    const Offering& shm = *offering(Carrier::shm);
    auto places = exchange_places(session_, *shm.transport(), shm.addresses(), std::move(own), deadline_);
    if (!places) return places.status();
    places_ = std::move(*places);
    return {};
  }

  Status offer(Carrier carrier, Result<std::unique_ptr<Transport>> transport, bool is_software) {
    if (!transport) log_info("{} cannot be used: {}", name(carrier), transport.status().message());
    auto made = Offering::publish(session_, carrier, std::move(transport), is_software, deadline_);
    if (!made) return made.status();
    offering(carrier) = std::move(*made);
    return {};
  }

  bool allows(Carrier carrier) const { return config_.allows_transport(name(carrier)); }
  std::optional<Offering>& offering(Carrier carrier) { return offerings_[static_cast<size_t>(carrier)]; }
  const std::optional<Offering>& offering(Carrier carrier) const { return offerings_[static_cast<size_t>(carrier)]; }
  const RankPlace& place() const { return places_[static_cast<size_t>(session_.rank())]; }
  std::vector<int> nodes() const {
    std::vector<int> result;
    for (const RankPlace& place : places_) result.push_back(place.node);
    return result;
  }
  int node(int rank) const { return places_[static_cast<size_t>(rank)].node; }
  const std::string& host(int rank) const { return places_[static_cast<size_t>(rank)].host; }

  // "" where this one connects the two.
  std::string why_not(Carrier carrier, int one, int other) const {
    if (!allows(carrier)) return fmt::format("TUTTI_TRANSPORT={} leaves it out", config_.transports());
    if (carrier == Carrier::shm) return node(one) == node(other) ? "" : "they do not share memory";
    return offering(carrier) ? offering(carrier)->why_not(one, other) : "it is not made";
  }
  bool connects(Carrier carrier, int one, int other) const {
    if (!allows(carrier)) return false;
    if (carrier == Carrier::shm) return node(one) == node(other);
    return offering(carrier) && offering(carrier)->connects(one, other);
  }
  std::optional<Carrier> carrier_between(int one, int other) const {
    for (const Carrier carrier : kCarriers)
      if (connects(carrier, one, other)) return carrier;
    return std::nullopt;
  }

  std::optional<Pair> first_unconnected() const {
    for (int one = 0; one < session_.size(); ++one)
      for (int other = one + 1; other < session_.size(); ++other)
        if (!carrier_between(one, other)) return Pair{one, other};
    return std::nullopt;
  }

  // Of the carriers before `end`: why none of them connects the two.
  std::string obstacles(int one, int other, std::optional<Carrier> end = std::nullopt) const {
    std::vector<std::string> texts;
    for (const Carrier carrier : kCarriers) {
      if (carrier == end) break;
      texts.push_back(fmt::format("{}: {}", name(carrier), why_not(carrier, one, other)));
    }
    return fmt::format("{}", fmt::join(texts, "; "));
  }

  // Of the carrier of messages to `peer`: why not one before it, and what is not known of it.
  std::string remarks(int peer, Carrier carrier) const {
    const std::string before = obstacles(session_.rank(), peer, carrier);
    const std::string doubt = offering(carrier)->doubt(session_.rank(), peer);
    if (doubt.empty()) return before;
    return fmt::format("{}{}{}: {}", before, before.empty() ? "" : "; ", name(carrier), doubt);
  }

  Carriage carriage(bool same_node) const {
    Carriage slowest;
    for (int one = 0; one < session_.size(); ++one)
      for (int other = one + 1; other < session_.size(); ++other) {
        if ((node(one) == node(other)) != same_node) continue;
        const Carrier carrier = *carrier_between(one, other);
        const bool is_software =
            carrier == Carrier::verbs && (offering(carrier)->is_software(one) || offering(carrier)->is_software(other));
        slowest = {std::max(slowest.carrier, carrier), slowest.is_software || is_software};
      }
    return slowest;
  }

  // Only what leads to somebody is kept; a rank alone keeps what it may use first.
  Connections connections() {
    Connections world;
    world.within = carriage(true);
    world.across = carriage(false);
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<int> way_of(static_cast<size_t>(session_.size()));
    world.ways.resize(way_of.size());
    world.addresses.resize(way_of.size());
    for (const Carrier carrier : kCarriers) {
      bool is_used = false;
      for (int peer = 0; peer < session_.size(); ++peer) {
        if (peer == session_.rank() || carrier_between(session_.rank(), peer) != carrier) continue;
        const auto index = static_cast<size_t>(peer);
        way_of[index] = static_cast<int>(transports.size());
        world.ways[index] = {carrier, remarks(peer, carrier)};
        world.addresses[index] = offering(carrier)->addresses()[index];
        is_used = true;
      }
      if (is_used) transports.push_back(offering(carrier)->take_transport());
    }
    if (transports.empty()) transports.push_back(offering(Carrier::shm)->take_transport());
    world.transport = transports.size() == 1
                          ? std::move(transports.front())
                          : std::make_unique<RoutedTransport>(std::move(transports), std::move(way_of));
    world.places = std::move(places_);
    return world;
  }

  Session& session_;
  const Config& config_;
  const Machine& machine_;
  Mail& mail_;
  const Deadline deadline_;
  std::vector<RankPlace> places_;
  std::array<std::optional<Offering>, kCarrierCount> offerings_;
};

// "ranks 1, 2 by shm; ranks 3 by ucx (verbs: rank 3 has none: ...)".
void log_ways(const std::vector<Way>& ways, int own) {
  for (const Carrier carrier : kCarriers) {
    std::vector<int> ranks;
    std::string why;
    for (int rank = 0; rank < static_cast<int>(ways.size()); ++rank) {
      const Way& way = ways[static_cast<size_t>(rank)];
      if (rank == own || way.carrier != carrier) continue;
      ranks.push_back(rank);
      if (why.empty() && !way.why.empty()) why = fmt::format(" ({})", way.why);
    }
    if (!ranks.empty()) log_info("messages to {} travel by {}{}", rank_list(ranks), name(carrier), why);
  }
}

}  // namespace

const char* name(Carrier carrier) {
  switch (carrier) {
    case Carrier::shm: return "shm";
    case Carrier::verbs: return "verbs";
    case Carrier::ucx: return "ucx";
  }
  return "?";
}

Result<Connections> connect_world(Session& session, const Config& config, const Machine& machine, RankPlace own,
                                  Mail& mail, Deadline deadline) {
  auto world = Choosing(session, config, machine, mail, deadline).run(std::move(own));
  if (world) log_ways(world->ways, session.rank());
  return world;
}

}  // namespace tutti::internal
