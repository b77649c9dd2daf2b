// Where memory shall lie.
#pragma once

#include <cstddef>

namespace tutti::internal {

// Pages of this range that nobody has touched yet come from the node (by the system's number; below 0: wherever), as
// long as it has some. Best effort: where this is forbidden, memory is right anywhere. Any thread.
void prefer_numa_node(void* memory, size_t bytes, int node);

}  // namespace tutti::internal
