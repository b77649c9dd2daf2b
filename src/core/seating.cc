#include "src/core/seating.h"

#include <fmt/core.h>
#include <unistd.h>

#include "src/base/log.h"

namespace tutti::internal {
namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

// Machines may look alike to the last bit, as clones of one virtual machine do: only who answers is on this one.
int lowest_on_this_node(int rank, const Transport& transport, const std::vector<std::string>& addresses,
                        Deadline deadline) {
  for (int other = 0; other < rank; ++other)
    if (transport.reachable(addresses[other]).ok() && transport.answers(addresses[other], deadline).ok()) return other;
  return rank;
}

}  // namespace

Result<std::shared_ptr<const Machine>> find_machine(const Config& config) {
  if (const std::string file = config.topology_file(); !file.empty()) {
    auto machine = Machine::this_host_by_file(file);
    if (!machine) return machine.status();
    return std::shared_ptr<const Machine>(std::make_shared<const Machine>(std::move(*machine)));
  }
  const Result<Machine>& machine = Machine::this_host();
  if (machine.ok() && machine.value().is_this_host)
    return std::shared_ptr<const Machine>(std::shared_ptr<void>(), &machine.value());
  Machine nothing;
  nothing.source = machine.ok() ? fmt::format("{} makes hwloc show another machine than this", machine.value().source)
                                : machine.status().message();
  log_warn("{}: ranks are not placed", nothing.source);
  return std::shared_ptr<const Machine>(std::make_shared<const Machine>(std::move(nothing)));
}

Result<std::vector<RankPlace>> exchange_places(Session& session, const Transport& transport,
                                               const std::vector<std::string>& addresses, RankPlace own,
                                               Deadline deadline) {
  own.host = host_name();
  own.node = lowest_on_this_node(session.rank(), transport, addresses, deadline);
  auto texts = session.exchange("place", own.encode(), deadline);
  if (!texts) return texts.status();
  std::vector<RankPlace> places;
  for (const std::string& text : *texts) {
    auto place = RankPlace::decode(text);
    if (!place) return place.status();
    places.push_back(std::move(*place));
  }
  return places;
}

}  // namespace tutti::internal
