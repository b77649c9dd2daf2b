// The part of tutti-run's command line that is about other hosts.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/run/options.h"

namespace tutti::internal {

struct HostOptions {
  std::optional<std::string> hosts;
  std::optional<std::string> hostfile;
  std::string ssh = "ssh";
  std::string host_timeout = "30";
};

void add_host_options(CLI::App& app, HostOptions& given, RunOptions& options);
// After parsing: fills in the hosts, and the number of ranks where it was not given. Errors: invalid_argument.
Status take_host_options(const CLI::App& app, const HostOptions& given, RunOptions& options);

}  // namespace tutti::internal
