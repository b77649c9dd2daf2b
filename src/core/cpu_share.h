// Whether the ranks of a node have a core each. Decides how a waiting rank behaves: alone on its core it spins, else it
// gives the core up at every look that finds nothing.
#pragma once

#include <vector>

#include "topology/cpu_list.h"

namespace tutti::internal {

// True where some set of ranks has fewer PUs between them than ranks. `cpus`: what each rank of the node may run on.
bool ranks_outnumber_cpus(const std::vector<CpuList>& cpus);

}  // namespace tutti::internal
