// Which transport carries the messages between each two ranks of a world: shared memory inside a node, verbs between
// nodes where both have a device and it leads from the one to the other, else UCX; of these what TUTTI_TRANSPORT
// allows. Decided alike on both ends, from what all ranks have published.
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

enum class Carrier : uint8_t { shm, verbs, ucx };
inline constexpr int kCarrierCount = 3;
const char* name(Carrier carrier);

// What carries messages to one peer, and why not what comes before it.
struct Way {
  Carrier carrier = Carrier::shm;
  std::string why;
};

// What the costs of messages depend on: alike on all ranks. A device that is emulated by processors is slow for each
// byte, not for each message.
struct Carriage {
  Carrier carrier = Carrier::shm;
  bool is_software = false;
};

struct Connections {
  std::unique_ptr<Transport> transport;
  std::vector<std::string> addresses;  // by rank, of what carries messages there
  std::vector<Way> ways;               // by rank; of this rank itself: nothing
  std::vector<RankPlace> places;       // by rank
  Carriage within, across;             // of the slowest two ranks on one node, and on two
};

// Blocks until all ranks have published. `mail` outlives the transport. Errors: unsupported (two ranks that nothing
// connects: which, and why), those of the session's exchange and of the transports.
Result<Connections> connect_world(Session& session, const Config& config, const Machine& machine, RankPlace own,
                                  Mail& mail, Deadline deadline);

}  // namespace tutti::internal
