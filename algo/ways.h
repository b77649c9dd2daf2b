// Schedules of ranks that reach each other in different ways, as by shared memory and over a network.
#pragma once

#include <span>

#include "algo/schedule.h"

namespace tutti::internal {

// The same schedule, of which no step exchanges messages with peers of two ways: a send becomes one for each way; a
// reduction takes the messages of the lowest way where they lie, and has the others received into scratch before.
// Messages stay exactly as they were. way_of[peer].
Schedule split_ways(const Schedule& schedule, std::span<const int> way_of);

}  // namespace tutti::internal
