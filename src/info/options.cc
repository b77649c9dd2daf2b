#include "src/info/options.h"

#include <fmt/core.h>
#include <tutti/tutti.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "src/base/config.h"

namespace tutti::internal {

std::optional<int> parse_info_options(int argc, char** argv, InfoOptions& options) {
  CLI::App app(
      "Shows the machine as tutti sees it, and why it chooses as it does.\n"
      "Without an option: a summary. The exit status is 0, 1 where something could not be read or written, 2 for a\n"
      "usage error.");
  std::string xml, synthetic;
  app.add_flag("--topology", options.topology, "The machine: packages, memory, caches, cores, devices");
  app.add_flag("--json", options.json, "With --topology: as JSON");
  app.add_option("--svg", options.svg, "With --topology: as a drawing, written into FILE")->type_name("FILE");
  app.add_option("--ranks", options.ranks, "With --svg: draw N ranks and the device of each")
      ->type_name("N")
      ->check(CLI::Range(1, 65536));
  app.add_option("--bind", options.bind, "With --ranks: bound as tutti-run does it (default: core)")
      ->type_name("UNIT")
      ->check(CLI::IsMember({"core", "l3", "numa", "package"}));
  app.add_flag("--devices", options.devices, "Each network device: usable or not, and why; its GIDs and the one taken");
  app.add_flag("--config", options.config, "Each setting: its value and where that comes from");
  app.add_option("--explain", options.explain,
                 "Which device is for core:INDEX, numa:NUMBER, gpu:INDEX or gpu:NAME, and why")
      ->type_name("PLACE");
  app.add_option("--local-rank", options.local_rank, "With --explain: of this rank of the node (default: 0)")
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
  auto* file =
      app.add_option("--xml", xml, "The machine of this file of hwloc's, not this one (also: TUTTI_TOPOLOGY_FILE)")
          ->type_name("FILE");
  app.add_option("--synthetic", synthetic, "A machine of this form: 'package:2 l3:2 core:4 pu:2'")
      ->type_name("TEXT")
      ->excludes(file);
  app.set_version_flag(
      "--version", fmt::format("tutti-info {}.{}.{}", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH));
  try {
    app.parse(argc, argv);
    if ((options.json || !options.svg.empty()) && !options.topology)
      throw CLI::RequiresError(options.json ? "--json" : "--svg", "--topology");
    if (options.json && !options.svg.empty()) throw CLI::ExcludesError("--json", "--svg");
    if (options.ranks > 0 && options.svg.empty()) throw CLI::RequiresError("--ranks", "--svg");
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fputs(fmt::format("tutti-info: {}\nTry 'tutti-info --help'.\n", error.what()).c_str(), stderr);
    return kExitInfoUsage;
  }
  if (!xml.empty()) options.source = {MachineSource::Kind::xml_file, xml};
  if (!synthetic.empty()) options.source = {MachineSource::Kind::synthetic, synthetic};
  return std::nullopt;
}

}  // namespace tutti::internal
