#include "src/run/options.h"

#include <fmt/core.h>
#include <tutti/tutti.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>

#include "src/base/config.h"
#include "src/run/environment.h"
#include "src/run/host_options.h"
#include "src/run/say.h"

namespace tutti::internal {
namespace {

// Validators of CLI11: each returns "" or what is wrong.
std::string check_ranks(const std::string& text) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error == std::errc() && end == text.data() + text.size() && ranks >= 1 && ranks <= RunOptions::kMostRanks)
    return "";
  return fmt::format("'{}' is no number of ranks: it must be a whole number from 1 to {}", text,
                     RunOptions::kMostRanks);
}

std::string check_binding(const std::string& text) {
  if (text == "none" || parse_bind_unit(text)) return "";
  return fmt::format("'{}' is no binding: it must be core, l3, numa, package or none", text);
}

std::string check_timeout(const std::string& text) {
  const auto us = parse_seconds(text);
  return us && *us > 0 ? "" : fmt::format("'{}' is no time: it must be seconds above 0, as in 1.5, or none", text);
}

std::string check_assignment(const std::string& text) {
  const std::string name = text.substr(0, text.find('='));
  if (name.empty()) return fmt::format("'{}' sets no variable: it must be NAME=value, or NAME", text);
  if (is_set_by_launcher(name)) return fmt::format("'{}': tutti-run gives {} its value for each rank", text, name);
  if (name.size() == text.size() && !find_variable(name))
    return fmt::format("'{}' is not set here: give it a value, as NAME=value", name);
  return "";
}

class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: tutti-run -n N [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n"
           "       tutti-run --hosts HOST:N,... [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n";
  }
};

void say_usage_error(const std::string& message) {
  std::fputs(fmt::format("tutti-run: {}\nTry 'tutti-run --help'.\n", message).c_str(), stderr);
}

// Help or version. Where it cannot be written it is a failure like any other of the launcher's.
int say_on_request(const CLI::App& app, const CLI::Success& success) {
  std::ostringstream text;
  app.exit(success, text, text);
  if (std::fputs(text.str().c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  print_error(launcher_line(fmt::format("cannot write to standard output: {}", std::strerror(errno))));
  return kExitLauncher;
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, RunOptions& options) {
  CLI::App app(
      "Starts PROGRAM as N ranks of one job, on this machine or, by ssh, on several.\n"
      "Its exit status is that of the first rank that failed (128 + number for a signal), 124 after --timeout,\n"
      "127 or 126 when the program cannot be found or started, 2 for a usage error, 125 when it fails itself.");
  app.formatter(std::make_shared<Help>());
  app.prefix_command();  // what follows the program's name is the program's
  std::string binding = "none";
  std::string timeout = "none";
  app.add_option("-n,--ranks", options.ranks, "How many ranks to start")->type_name("N")->check(check_ranks);
  app.add_option("--bind", binding,
                 "core: each rank on a core of its own, as far as there are; l3, numa, package: each rank on the\n"
                 "cores of one, neighbours together; none (default). Never outside what tutti-run itself may use")
      ->type_name("core|l3|numa|package|none")
      ->check(check_binding);
  app.add_option("--env", options.environment,
                 "Set a variable for all ranks; may be given several times. NAME alone: as it is here. TUTTI_... and\n"
                 "UCX_... go to other hosts by themselves. In PATH the program is searched for")
      ->type_name("NAME=value")
      ->allow_extra_args(false)
      ->check(check_assignment);
  app.add_option("--cwd", options.directory, "The folder in which ranks run; default: this one")->type_name("DIR");
  app.add_flag("--tag-output", options.tag_output, "Begin each line that a rank writes with its number: [3] text");
  app.add_option("--timeout", timeout, "End all ranks after this time; the status is then 124")
      ->type_name("SECONDS")
      ->check(check_timeout);
  HostOptions host_options;
  add_host_options(app, host_options, options);
  app.set_version_flag(
      "--version", fmt::format("tutti-run {}.{}.{}", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return say_on_request(app, success);
  } catch (const CLI::ParseError& error) {
    say_usage_error(error.what());
    return kExitUsage;
  }
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front() == "--") {
    options.command.erase(options.command.begin());
  } else if (!options.command.empty() && options.command.front().starts_with('-')) {
    say_usage_error(
        fmt::format("'{}' is no option of tutti-run; a program of that name comes after --", options.command.front()));
    return kExitUsage;
  }
  if (options.command.empty()) {
    say_usage_error("no program was given");
    return kExitUsage;
  }
  if (const Status status = take_host_options(app, host_options, options); !status.ok()) {
    say_usage_error(status.message());
    return kExitUsage;
  }
  for (std::string& variable : options.environment)
    if (variable.find('=') == std::string::npos) variable = *find_variable(variable);
  options.bind = parse_bind_unit(binding);
  options.timeout_us = *parse_seconds(timeout);
  return std::nullopt;
}

}  // namespace tutti::internal
