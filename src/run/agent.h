// tutti-run on another host, started there by the user's tutti-run: runs its part of the job's ranks.
#pragma once

#include "src/base/unique_fd.h"
#include "src/run/spawn.h"

namespace tutti::internal {

// `front` is readable when the first process has gone; `input` is where messages come from; they go to standard output.
int run_agent(const Inherited& inherited, UniqueFd front, UniqueFd input);

}  // namespace tutti::internal
