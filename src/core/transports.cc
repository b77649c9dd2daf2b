#include "src/core/transports.h"

#include <fmt/core.h>

#include <algorithm>

#include "src/base/log.h"
#include "src/core/ib_settings.h"
#include "topology/locality.h"
#include "transport/shm/shm_transport.h"
#include "transport/verbs/verbs_transport.h"

namespace tutti::internal {
namespace {

// The first byte of what a rank publishes for verbs.
constexpr char kHardware = 'h', kSoftware = 's', kNone = '-';

// The system's number of the node where this rank's memory shall lie; -1: there is no choice.
int numa_node_of(const Machine& machine, const RankPlace& own) {
  const bool is_near_one = machine.is_this_host && machine.numa_nodes.size() > 1 && own.numa >= 0;
  return is_near_one ? machine.numa_nodes[static_cast<size_t>(own.numa)].os_index : -1;
}

Status check_reachable(const Transport& transport, const std::vector<std::string>& addresses, int own) {
  for (int peer = 0; peer < static_cast<int>(addresses.size()); ++peer) {
    if (peer == own) continue;
    if (const Status reachable = transport.reachable(addresses[static_cast<size_t>(peer)]); !reachable.ok())
      return Status(Code::unsupported, fmt::format("rank {} cannot reach rank {} by {}: {}", own, peer,
                                                   transport.name(), reachable.message()));
  }
  return {};
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

bool wants_verbs(const Config& config, const std::vector<RankPlace>& places) {
  if (config.transport() != "auto") return config.transport() == "verbs";
  return std::ranges::any_of(places, [&](const RankPlace& place) { return place.node != places.front().node; });
}

// All ranks learn of it when one of them has no device.
Status use_verbs(Session& session, const Config& config, const Machine& machine, Mail& mail, Deadline deadline,
                 Connections& world) {
  const int rank = session.rank();
  const RankPlace& own = world.places[static_cast<size_t>(rank)];
  VerbsTransport::Options options;
  options.rank = rank;
  options.world_size = session.size();
  options.numa_node = numa_node_of(machine, own);
  options.preferred = near_devices(machine, own);
  options.settings = ib_settings(config);
  auto verbs = VerbsTransport::create(options, mail);
  std::string text;
  if (verbs) {
    text = is_emulated(machine, (*verbs)->devices()) ? kSoftware : kHardware;
    text += (*verbs)->address();
  } else {
    text = kNone + verbs.status().message();
  }
  auto texts = session.exchange("verbs", text, deadline);
  if (!texts) return texts.status();
  if (!verbs) return verbs.status();
  for (int peer = 0; peer < session.size(); ++peer) {
    std::string& address = (*texts)[static_cast<size_t>(peer)];
    const char kind = address.empty() ? kNone : address.front();
    address.erase(0, 1);
    if (kind == kNone) return Status(Code::unsupported, fmt::format("rank {} cannot use verbs: {}", peer, address));
    world.is_software |= kind == kSoftware;
  }
  TUTTI_RETURN_IF_ERROR(check_reachable(**verbs, *texts, rank));
  world.transport = std::move(*verbs);
  world.addresses = std::move(*texts);
  return {};
}

}  // namespace

Result<Connections> connect_world(Session& session, const Config& config, const Machine& machine, RankPlace own,
                                  Mail& mail, Deadline deadline) {
  auto shm = ShmTransport::create(
      {.rank = session.rank(), .world_size = session.size(), .numa_node = numa_node_of(machine, own)});
  if (!shm) return shm.status();
  auto addresses = session.exchange("shm", (*shm)->address(), deadline);
  if (!addresses) return addresses.status();
  // Also where verbs carries everything: ranks of one node are those that can share memory.
  auto places = exchange_places(session, **shm, *addresses, std::move(own), deadline);
  if (!places) return places.status();
  Connections world;
  world.places = std::move(*places);
  if (wants_verbs(config, world.places)) {
    TUTTI_RETURN_IF_ERROR(use_verbs(session, config, machine, mail, deadline, world));
  } else {
    TUTTI_RETURN_IF_ERROR(check_reachable(**shm, *addresses, session.rank()));
    world.transport = std::move(*shm);
    world.addresses = std::move(*addresses);
  }
  log_info("messages travel by {}", world.transport->name());
  return world;
}

}  // namespace tutti::internal
