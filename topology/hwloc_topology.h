// hwloc's objects with owners, and a loaded topology with a reason where there is none.
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>

#include "topology/machine.h"

namespace tutti::internal {

struct HwlocDestroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Topology = std::unique_ptr<hwloc_topology, HwlocDestroy>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, HwlocDestroy>;

// With network, GPU and RDMA devices, and also with what a cgroup forbids. Errors: see Machine::read.
Result<Topology> load_topology(const MachineSource& source);

CpuList list_of(hwloc_const_bitmap_t set);

// What the object says of itself under this name, without the blanks that some processors fill their name up with; ""
// where it says nothing.
std::string info_of(hwloc_obj_t object, const char* name);

// Reads what devices the topology shows into machine.nics, gpus and displays. Packages and NUMA nodes are there
// already.
void read_devices(hwloc_topology_t topology, Machine& machine);

}  // namespace tutti::internal
