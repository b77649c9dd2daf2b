// Which transport carries the messages of a world, and by which addresses its ranks reach each other: shared memory
// where all ranks are on one node, verbs between nodes, or what TUTTI_TRANSPORT says (ucx too). Decided alike on all
// ranks, from what all of them have published.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/core/seating.h"
#include "src/core/store/session.h"
#include "topology/machine.h"
#include "topology/rank_map.h"
#include "transport/transport.h"

namespace tutti::internal {

struct Connections {
  std::unique_ptr<Transport> transport;
  std::vector<std::string> addresses;  // by rank
  std::vector<RankPlace> places;       // by rank
  // A device that is emulated by processors is slow for each byte, not for each message.
  bool is_software = false;
};

// Blocks until all ranks have published. `mail` outlives the transport. Errors: unsupported (two ranks that cannot
// reach each other, or a rank without a usable device: which, and why), those of the session's exchange and of the
// transports.
Result<Connections> connect_world(Session& session, const Config& config, const Machine& machine, RankPlace own,
                                  Mail& mail, Deadline deadline);

}  // namespace tutti::internal
