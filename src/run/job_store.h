// The store in which the ranks of a job meet. tutti-run serves it, so that it outlives every rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/core/store/store_server.h"
#include "src/run/environment.h"

namespace tutti::internal {

// For ranks of this machine alone. Fills in where it is, and its secret.
Result<std::unique_ptr<StoreServer>> serve_here(JobAddress& job);

// For ranks on several machines, where TUTTI_INTERFACE and TUTTI_PORT_RANGE allow it; `variables` are the job's.
// `hosts` are this machine's addresses, to be tried in turn.
Result<std::unique_ptr<StoreServer>> serve_for_hosts(const std::vector<std::string>& variables, JobAddress& job,
                                                     std::vector<std::string>& hosts);

}  // namespace tutti::internal
