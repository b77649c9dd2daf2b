// One run of tutti-perf in a world that has been joined: each size in turn is checked, measured and reported.
#pragma once

#include <vector>

#include "exercise.h"
#include "options.h"

namespace tutti::perf {

// The counts of the sweep, each once and growing: what the sizes come to in whole elements. The largest size is always
// the last, whether a power of the factor leads to it or not.
std::vector<size_t> counts_of(const Options& options, int size);

// Throws std::runtime_error when the library fails. Returns the number of wrong elements, on every rank.
uint64_t sweep(tutti_group* group, const Options& options, Place place);

// What the memory of all ranks lacks for these options, on all ranks alike, or "".
std::string check_memory(tutti_group* group, const Options& options, Place place);

}  // namespace tutti::perf
