// A job whose ranks are all on this machine.
#pragma once

#include "src/base/unique_fd.h"
#include "src/run/options.h"
#include "src/run/spawn.h"

namespace tutti::internal {

// Runs it. `front` is readable when the first process has gone; `input` is rank 0's standard input. The exit status.
int run_job_here(const RunOptions& options, const Inherited& inherited, UniqueFd front, UniqueFd input);

}  // namespace tutti::internal
