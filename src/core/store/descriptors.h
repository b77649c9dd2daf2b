// The limit on open descriptors, raised where a store needs more.
#pragma once

#include "src/base/status.h"

namespace tutti::internal {

// Makes room for the connections of `ranks` ranks: raises the soft limit as far as needed and allowed.
// Errors: out_of_resources, naming the limit.
Status reserve_descriptors(int ranks);

}  // namespace tutti::internal
