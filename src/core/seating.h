// Where the ranks of a world sit: each tells the others what its machine shows of its place, and which ranks it really
// shares memory with.
#pragma once

#include <memory>
#include <vector>

#include "src/base/config.h"
#include "src/core/store/session.h"
#include "topology/rank_map.h"
#include "transport/transport.h"

namespace tutti::internal {

// This host, or what TUTTI_TOPOLOGY_FILE says that it is. Where this host cannot be read, a machine without parts,
// whose source says why: then less is known. Errors: invalid_argument (the file).
Result<std::shared_ptr<const Machine>> find_machine(const Config& config);

// Blocks until all ranks have told. `addresses`: of the transport, by rank. `own`: by place_on; its host and node are
// found here. Errors: those of the session's exchange.
Result<std::vector<RankPlace>> exchange_places(Session& session, const Transport& transport,
                                               const std::vector<std::string>& addresses, RankPlace own,
                                               Deadline deadline);

}  // namespace tutti::internal
