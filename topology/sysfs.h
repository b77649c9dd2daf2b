// What only the running kernel knows of its devices: RDMA devices without a place on PCI, ports, speeds. Files that are
// hidden, or that vanish while they are read, leave a fact unknown.
#pragma once

#include <string>

#include "topology/machine.h"

namespace tutti::internal {

// `root` is where sysfs is mounted.
void add_facts_of_sysfs(Machine& machine, const std::string& root = "/sys");

}  // namespace tutti::internal
