// The parts of what tutti-info prints that are more than one call.
#pragma once

#include <string>
#include <vector>

#include "src/base/config.h"
#include "topology/show.h"

namespace tutti::internal {

// One line per setting: name, value, where it comes from, what it is for.
std::string config_text(const Config& config);

// The network devices, each with its GIDs where the kernel shows them.
std::string devices_report(const Machine& machine);

struct Placing {
  std::vector<DrawnRank> ranks;
  std::string crowding;  // where ranks outnumber cores
};

// Where tutti-run would bind `ranks` ranks, and the device of each. `unit`: as tutti-run --bind takes it. Errors:
// invalid_argument, unsupported.
Result<Placing> place_ranks(const Machine& machine, int ranks, const std::string& unit);

}  // namespace tutti::internal
