// Whether the ranks of a node have a core each. Decides how a waiting rank behaves: alone on its core it spins, else it
// gives the core up at every look that finds nothing.
#pragma once

#include <string>
#include <vector>

namespace tutti::internal {

// The PUs that the calling thread may run on, as text that ranks can exchange: "0,1,5".
std::string allowed_cpus();

// True where some set of ranks has fewer PUs between them than ranks. `cpus`: allowed_cpus() of each rank of the node.
bool ranks_outnumber_cpus(const std::vector<std::string>& cpus);

}  // namespace tutti::internal
