#include "src/info/report.h"

#include <fmt/core.h>

#include "src/info/gids.h"
#include "topology/binding.h"

namespace tutti::internal {
namespace {

std::string gids_text(const Nic& nic) {
  std::string text;
  for (const RdmaPort& port : nic.ports) {
    const auto gids = read_gids(nic.rdma, port.number);
    const int chosen = choose_gid(gids);
    for (int i = 0; i < static_cast<int>(gids.size()); ++i)
      text += fmt::format("  port {} GID {}: {} {} {}{}\n", port.number, gids[i].index, gids[i].text, gids[i].type,
                          gids[i].net, i == chosen ? fmt::format("  <- taken: {}", to_string(class_of(gids[i]))) : "");
  }
  return text;
}

}  // namespace

std::string config_text(const Config& config) {
  std::string text;
  for (const Config::Row& row : config.rows())
    text += fmt::format("{} = {}\n  from {}; {}: {}\n", row.name, row.value.empty() ? "(none)" : row.value, row.source,
                        row.type, row.help);
  return text;
}

std::string devices_report(const Machine& machine) {
  std::string text;
  for (const Nic& nic : machine.nics) {
    text += device_text(machine, nic);
    if (machine.is_this_host) text += gids_text(nic);
  }
  return text.empty() ? "no network device\n" : text;
}

Result<Placing> place_ranks(const Machine& machine, int ranks, const std::string& unit) {
  const bool is_bound = unit != "none";
  const auto parsed = parse_bind_unit(unit);
  if (is_bound && !parsed) return Status(Code::invalid_argument, fmt::format("'{}' is no unit to bind to", unit));
  auto places = is_bound ? bindings(machine, *parsed, ranks)
                         : Result(std::vector<CpuList>(static_cast<size_t>(ranks), machine.allowed));
  if (!places) return places.status();
  Placing placing;
  const NicUse use = use_of_ranks(machine);
  for (int rank = 0; rank < ranks; ++rank) {
    const CpuList& place = (*places)[rank];
    placing.ranks.push_back({cores_of(machine, place), choose_nic(machine, place, use, rank)});
  }
  if (is_bound) placing.crowding = crowding(machine, *places);
  return placing;
}

}  // namespace tutti::internal
