// tutti-run's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "topology/binding.h"

namespace tutti::internal {

// What tutti-run itself ends with; else its status is that of the first rank that failed.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitLauncher = 125;  // the launcher itself could not do its work
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignalBase = 128;  // plus the signal's number

struct RunOptions {
  static constexpr int kMostRanks = 4096;

  int ranks = 0;
  std::optional<BindUnit> bind;          // none: ranks stay where they may be
  std::vector<std::string> environment;  // "NAME=value"
  bool tag_output = false;
  int64_t timeout_us = Deadline::kNever;
  std::vector<std::string> command;  // the program and its arguments
};

// Fills `options` and returns nothing; or has printed help or a usage error, and returns the exit status.
std::optional<int> parse_options(int argc, char** argv, RunOptions& options);

}  // namespace tutti::internal
