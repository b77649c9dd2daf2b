// tutti-info: what tutti sees of this machine, of its devices and of its settings, and why it chooses as it does.
#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/info/options.h"
#include "src/info/report.h"
#include "topology/show.h"

namespace {

using namespace tutti::internal;

int fail(const std::string& message) {
  std::fputs(fmt::format("tutti-info: {}\n", message).c_str(), stderr);
  return kExitInfoFailed;
}

int say(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  return fail(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

int draw(const Machine& machine, const InfoOptions& options) {
  std::vector<DrawnRank> ranks;
  if (options.ranks > 0) {
    auto placed = place_ranks(machine, options.ranks, options.bind);
    if (!placed) return fail(placed.status().message());
    ranks = std::move(*placed);
  }
  std::ofstream file(options.svg, std::ios::binary | std::ios::trunc);
  file << to_svg(machine, ranks);
  file.close();
  return file ? 0 : fail(fmt::format("cannot write {}: {}", options.svg, std::strerror(errno)));
}

int explain_place(const Machine& machine, const InfoOptions& options) {
  const auto anchor = Anchor::parse(options.explain, machine);
  if (!anchor) return fail(anchor.status().message());
  std::string text = explain(machine, anchor.value(), NicUse::rdma, options.local_rank);
  text += explain(machine, anchor.value(), NicUse::any, options.local_rank);
  return say(text);
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
  auto config = Config::load({});
  if (!config) return fail(config.status().message());
  if (options.config) return say(config_text(*config));
  if (options.source.kind == MachineSource::Kind::this_host && !config->topology_file().empty())
    options.source = {MachineSource::Kind::xml_file, config->topology_file()};
  const auto machine = Machine::read(options.source);
  if (!machine) return fail(machine.status().message());
  return show(machine.value(), options);
}
