#include "src/core/transports.h"

#include <fmt/core.h>

#include <algorithm>

#include "src/base/log.h"
#include "src/core/ib_settings.h"
#include "topology/locality.h"
#include "transport/shm/shm_transport.h"
#include "transport/ucx/ucx_transport.h"
#include "transport/verbs/verbs_transport.h"

namespace tutti::internal {
namespace {

// The first byte of what a rank publishes for verbs and ucx.
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

// A transport between nodes as this rank could make it, or why it could not.
struct Candidate {
  std::string name;
  Result<std::unique_ptr<Transport>> transport;
  bool is_software = false;
};

Candidate make_verbs(Session& session, const Config& config, const Machine& machine, Mail& mail, const RankPlace& own) {
  VerbsTransport::Options options;
  options.rank = session.rank();
  options.world_size = session.size();
  options.numa_node = numa_node_of(machine, own);
  options.preferred = near_devices(machine, own);
  options.settings = ib_settings(config);
  auto made = VerbsTransport::create(options, mail);
  if (!made) return {"verbs", made.status()};
  const bool is_software = is_emulated(machine, (*made)->devices());
  return {"verbs", std::unique_ptr<Transport>(std::move(*made)), is_software};
}

Candidate make_ucx(Session& session, const Machine& machine, Mail& mail, const RankPlace& own) {
  auto made = UcxTransport::create(
      {.rank = session.rank(), .world_size = session.size(), .numa_node = numa_node_of(machine, own)}, mail);
  if (!made) return {"ucx", made.status()};
  return {"ucx", std::unique_ptr<Transport>(std::move(*made))};
}

// All ranks learn of it when one of them cannot use it.
Status use(Candidate candidate, Session& session, Deadline deadline, Connections& world) {
  auto& transport = candidate.transport;
  const std::string text = transport ? (candidate.is_software ? kSoftware : kHardware) + (*transport)->address()
                                     : kNone + transport.status().message();
  auto texts = session.exchange(candidate.name, text, deadline);
  if (!texts) return texts.status();
  if (!transport) return transport.status();
  for (int peer = 0; peer < session.size(); ++peer) {
    std::string& address = (*texts)[static_cast<size_t>(peer)];
    const char kind = address.empty() ? kNone : address.front();
    address.erase(0, 1);
    if (kind == kNone)
      return Status(Code::unsupported, fmt::format("rank {} cannot use {}: {}", peer, candidate.name, address));
    world.is_software |= kind == kSoftware;
  }
  TUTTI_RETURN_IF_ERROR(check_reachable(**transport, *texts, session.rank()));
  world.transport = std::move(*transport);
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
  // Also where verbs or ucx carries everything: ranks of one node are those that can share memory.
  auto places = exchange_places(session, **shm, *addresses, std::move(own), deadline);
  if (!places) return places.status();
  Connections world;
  world.places = std::move(*places);
  const RankPlace& place = world.places[static_cast<size_t>(session.rank())];
  if (config.transport() == "ucx") {
    TUTTI_RETURN_IF_ERROR(use(make_ucx(session, machine, mail, place), session, deadline, world));
  } else if (wants_verbs(config, world.places)) {
    TUTTI_RETURN_IF_ERROR(use(make_verbs(session, config, machine, mail, place), session, deadline, world));
  } else {
    TUTTI_RETURN_IF_ERROR(check_reachable(**shm, *addresses, session.rank()));
    world.transport = std::move(*shm);
    world.addresses = std::move(*addresses);
  }
  log_info("messages travel by {}", world.transport->name());
  return world;
}

}  // namespace tutti::internal
