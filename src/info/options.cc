#include "src/info/options.h"

#include <fmt/core.h>
#include <tutti/tutti.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <vector>

#include "src/base/config.h"

namespace tutti::internal {
namespace {

// A validator of CLI11: it returns "" or what is wrong.
std::string check_not_empty(const std::string& text) { return text.empty() ? "the value is empty" : ""; }

// The command line, and which of its options go together.
class CommandLine {
 public:
  explicit CommandLine(InfoOptions& options);
  // Throws CLI::Success (for help and version) and CLI::ParseError.
  void parse(int argc, char** argv) { app_.parse(argc, argv); }
  // Exactly what CLI11 would print.
  std::string printed(const CLI::Success& success);

  std::string xml, synthetic;

 private:
  CLI::Option* text(const char* name, std::string& value, const char* help, const char* type) {
    return app_.add_option(name, value, help)->type_name(type)->check(check_not_empty);
  }
  void add_reports(InfoOptions& options);
  void add_machines();

  CLI::App app_{
      "Shows the machine as tutti sees it, and why it chooses as it does.\n"
      "Without an option: a summary. The exit status is 0, 1 where something could not be read, placed or written,\n"
      "2 for a usage error, such as a place that the machine does not have."};
  CLI::Option* config_ = nullptr;
};

CommandLine::CommandLine(InfoOptions& options) {
  add_reports(options);
  add_machines();
  app_.set_version_flag(
      "--version", fmt::format("tutti-info {}.{}.{}", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH));
}

void CommandLine::add_reports(InfoOptions& options) {
  auto* topology =
      app_.add_flag("--topology", options.topology, "The machine: packages, memory, caches, cores, devices");
  auto* json = app_.add_flag("--json", options.json, "With --topology, --peers: as JSON");
  auto* svg =
      text("--svg", options.svg, "With --topology: as a drawing, written into FILE (-: standard output)", "FILE")
          ->needs(topology)
          ->excludes(json);
  auto* ranks = app_.add_option("--ranks", options.ranks, "With --svg: draw N ranks and the device of each")
                    ->type_name("N")
                    ->check(CLI::Range(1, 65536))
                    ->needs(svg);
  app_.add_option("--bind", options.bind, "With --ranks: bound as tutti-run does it (default: core)")
      ->type_name("UNIT")
      ->check(CLI::IsMember({"core", "l3", "numa", "package", "none"}))
      ->needs(ranks);
  auto* devices = app_.add_flag("--devices", options.devices,
                                "Each network device: usable or not, and why; its GIDs and the one taken");
  config_ = app_.add_flag("--config", options.config, "Each setting: its value and where that comes from");
  auto* peers = app_.add_flag("--peers", options.peers,
                              "Under tutti-run or the like: what carries messages between the ranks, and why");
  auto* explain = text("--explain", options.explain,
                       "Which device is for core:INDEX, numa:NUMBER, gpu:INDEX or gpu:NAME, and why", "PLACE");
  app_.add_option("--local-rank", options.local_rank, "With --explain: of this rank of the node (default: 0)")
      ->type_name("N")
      ->check(CLI::Range(0, 65535))
      ->needs(explain);
  // One report at a time.
  const std::vector<CLI::Option*> reports{topology, devices, config_, peers, explain};
  for (size_t i = 0; i < reports.size(); ++i)
    for (size_t j = 0; j < i; ++j) reports[i]->excludes(reports[j]);
}

void CommandLine::add_machines() {
  auto* file =
      text("--xml", xml, "The machine of this file of hwloc's, not this one (also: TUTTI_TOPOLOGY_FILE)", "FILE")
          ->excludes(config_);
  text("--synthetic", synthetic, "A machine of this form: 'package:2 l3:2 core:4 pu:2'", "TEXT")
      ->excludes(config_)
      ->excludes(file);
}

std::string CommandLine::printed(const CLI::Success& success) {
  std::ostringstream text;
  app_.exit(success, text, text);
  return text.str();
}

}  // namespace

std::optional<int> parse_info_options(int argc, char** argv, InfoOptions& options) {
  CommandLine line(options);
  try {
    line.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return say(line.printed(success));
  } catch (const CLI::ParseError& error) {
    return fail_usage(error.what());
  }
  if (options.json && !options.topology && !options.peers) return fail_usage("--json requires --topology or --peers");
  if (!line.xml.empty()) options.source = {MachineSource::Kind::xml_file, line.xml};
  if (!line.synthetic.empty()) options.source = {MachineSource::Kind::synthetic, line.synthetic};
  return std::nullopt;
}

int fail(const std::string& message) {
  std::fputs(fmt::format("tutti-info: {}\n", message).c_str(), stderr);
  return kExitInfoFailed;
}

int fail_usage(const std::string& message) {
  std::fputs(fmt::format("tutti-info: {}\nTry 'tutti-info --help'.\n", message).c_str(), stderr);
  return kExitInfoUsage;
}

int say(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  return fail(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

}  // namespace tutti::internal
