// tutti-run's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/run/hosts.h"
#include "topology/binding.h"

namespace tutti::internal {

// What tutti-run itself ends with; else its status is that of the first rank that failed.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitLauncher = 125;  // the launcher itself could not do its work
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignalBase = 128;  // plus the signal's number

// The one argument of a tutti-run that another one starts on its host.
inline constexpr const char* kAgentOption = "--agent";

struct RunOptions {
  static constexpr int kMostRanks = 4096;

  int ranks = 0;
  std::vector<HostSlots> hosts;          // none: this machine alone, without an agent
  std::vector<std::string> ssh{"ssh"};   // starts a command on another host
  int ssh_port = 0;                      // 0: as ssh is configured
  std::string remote_path;               // of tutti-run there; "": as here
  int64_t host_timeout_us = 30'000'000;  // after which a host that says nothing is lost
  std::string directory;                 // where ranks run; "": where this process does
  std::optional<BindUnit> bind;          // none: ranks stay where they may be
  std::vector<std::string> environment;  // "NAME=value"
  bool tag_output = false;
  int64_t timeout_us = Deadline::kNever;
  std::vector<std::string> command;  // the program and its arguments
};

// Fills `options` and returns nothing; or has printed help or a usage error, and returns the exit status.
std::optional<int> parse_options(int argc, char** argv, RunOptions& options);

}  // namespace tutti::internal
