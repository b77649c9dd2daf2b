// tutti-info: what tutti sees of this machine, of its devices and of its settings, and why it chooses as it does.
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <tutti/tutti.hpp>

#include "src/info/options.h"
#include "src/info/peers.h"
#include "src/info/report.h"
#include "src/info/whole_file.h"

namespace {

using namespace tutti::internal;

void warn(const std::string& message) { std::fputs(fmt::format("tutti-info: warning: {}\n", message).c_str(), stderr); }

// Of the settings, --xml and --synthetic: the machine that was meant.
Result<Machine> wanted_machine(const InfoOptions& options, const Config& config) {
  if (options.source.kind != MachineSource::Kind::this_host) return Machine::read(options.source);
  if (!config.topology_file().empty()) return Machine::this_host_by_file(config.topology_file());
  const Result<Machine>& machine = Machine::this_host();
  if (machine.ok() && !machine.value().is_this_host)
    warn(fmt::format("{} makes hwloc show another machine than this", machine.value().source));
  return machine;
}

int draw(const Machine& machine, const InfoOptions& options) {
  Placing placing;
  if (options.ranks > 0) {
    auto placed = place_ranks(machine, options.ranks, options.bind);
    if (!placed) return fail(placed.status().message());
    placing = std::move(*placed);
  }
  if (!placing.crowding.empty()) warn(placing.crowding);
  const std::string svg = to_svg(machine, placing.ranks);
  if (options.svg == "-") return say(svg);
  const Status written = write_whole_file(options.svg, svg);
  return written.ok() ? 0 : fail(written.message());
}

int explain_place(const Machine& machine, const InfoOptions& options) {
  const auto anchor = Anchor::parse(options.explain, machine);
  if (!anchor) return fail_usage("--explain: " + anchor.status().message());
  std::string text = explain(machine, anchor.value(), NicUse::rdma, options.local_rank);
  text += explain(machine, anchor.value(), NicUse::any, options.local_rank);
  return say(text);
}

int show_peers(const InfoOptions& options) {
  try {
    return say(peers_report(options.json));
  } catch (const tutti::Error& error) {
    return fail(error.what());
  }
}

int show(const Machine& machine, const InfoOptions& options) {
  if (!options.svg.empty()) return draw(machine, options);
  if (options.json) return say(to_json(machine).dump(2) + "\n");
  if (options.topology) return say(to_text(machine));
  if (options.devices) return say(devices_report(machine));
  if (!options.explain.empty()) return explain_place(machine, options);
  return say(summary_text(machine));
}

}  // namespace

int main(int argc, char** argv) {
  InfoOptions options;
  if (const auto status = parse_info_options(argc, argv, options)) return *status;
  if (options.peers) return show_peers(options);
  auto config = Config::load({});
  if (!config) return fail(config.status().message());
  if (options.config) return say(config_text(*config));
  const auto machine = wanted_machine(options, *config);
  return machine ? show(machine.value(), options) : fail(machine.status().message());
}
