// The ranks of a job on one host, and how to start them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/run/environment.h"
#include "topology/binding.h"

namespace tutti::internal {

struct Task {
  JobAddress job;
  int first_rank = 0;
  int rank_count = 0;
  std::vector<std::string> command;      // the program and its arguments
  std::vector<std::string> environment;  // "NAME=value", beside what this process has
  std::string directory;                 // where they run; "": where this process does
  std::optional<BindUnit> bind;          // none: ranks stay where they may be
  int64_t timeout_us = Deadline::kNever;
};

}  // namespace tutti::internal
