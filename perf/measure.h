// How long the calls take. Every call follows a barrier; a call's time is its slowest rank's.
#pragma once

#include <cstdint>
#include <vector>

#include "operation.h"
#include "options.h"

namespace tutti::perf {

struct Timing {
  uint64_t iterations;
  double min_us, p50_us, p99_us;
  double loop_us;  // from a call to the next, the barrier between them included: rank 0's mean
};

// The same answer on all ranks.
Timing measure(tutti_group* group, const Options& options, const Call& call);

// The smallest value that is not below `share` of the values. `sorted` is not empty.
double percentile(const std::vector<double>& sorted, double share);

// How many calls to measure where one takes `call_us`.
uint64_t iterations_for(double call_us);

}  // namespace tutti::perf
