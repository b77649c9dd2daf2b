// Says in words what a work is doing: for errors, for the log, and for whoever waits too long.
#pragma once

#include <string>
#include <vector>

#include "src/core/work.h"
#include "transport/transport.h"

namespace tutti::internal {

// "all_reduce(count 4, float32, sum) #12".
std::string describe(const Work& work);

// The error of a step that completed badly: which step, which peer, what was found.
Status step_error(const Work& work, uint32_t step, const Completion& completion);

// The world ranks that posted steps of the work wait for, each once, in order.
std::vector<int> awaited_ranks(const Work& work);

// The world ranks of which a message of the work has been taken whole.
std::vector<int> heard_ranks(const Work& work);

// "rank 2", "ranks 1, 2 and 5", "ranks 1, 2, 3 and 13 more".
std::string rank_list(const std::vector<int>& ranks);

}  // namespace tutti::internal
