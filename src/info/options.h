// tutti-info's command line.
#pragma once

#include <optional>
#include <string>

#include "topology/machine.h"

namespace tutti::internal {

inline constexpr int kExitInfoFailed = 1;
inline constexpr int kExitInfoUsage = 2;

struct InfoOptions {
  MachineSource source;
  bool topology = false;
  bool json = false;
  std::string svg;  // the file to draw into; "-": standard output
  bool devices = false;
  bool config = false;
  bool peers = false;
  std::string explain;  // "core:3"
  int local_rank = 0;
  int ranks = 0;  // to draw
  std::string bind = "core";
};

// Fills `options` and returns nothing; or has printed help or a usage error, and returns the exit status.
std::optional<int> parse_info_options(int argc, char** argv, InfoOptions& options);

// On standard error and standard output; each returns the exit status.
int fail(const std::string& message);
int fail_usage(const std::string& message);
int say(const std::string& text);

}  // namespace tutti::internal
