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

Result<std::vector<DrawnRank>> place_ranks(const Machine& machine, int ranks, const std::string& unit) {
  const auto parsed = parse_bind_unit(unit);
  if (!parsed) return Status(Code::invalid_argument, fmt::format("'{}' is no unit to bind to", unit));
  auto places = bindings(machine, *parsed, ranks);
  if (!places) return places.status();
  std::vector<DrawnRank> drawn;
  for (int rank = 0; rank < ranks; ++rank) {
    const int core = machine.core_of((*places)[rank].front());
    drawn.push_back({core, core < 0 ? -1 : choose_nic(machine, {Anchor::Kind::core, core}, NicUse::any, rank)});
  }
  return drawn;
}

}  // namespace tutti::internal
