// Where a world's store is right now, asked anew before each attempt to reach it: names change their meaning, files
// appear, and what stood there may have been of an earlier run. And the other side of it: rank 0 makes it known.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/core/store/handshake.h"
#include "src/core/store/rendezvous.h"
#include "src/core/store/socket.h"

namespace tutti::internal {

struct StorePlace {
  std::vector<Address> addresses;  // to be tried in turn; empty: not known yet
  Credentials credentials;
  std::string unknown_because;
  // Another try will not mend it.
  Status error;
  bool unknown_name = false;  // the name service knows no such name; it may yet
};

StorePlace locate(const Rendezvous& rendezvous);

// Makes the store at `port` known where the others look. `withdraw` undoes it; it may be called from any thread, and
// more than once, and touches only what this call has put there.
struct Published {
  Status status;
  std::function<void()> withdraw;
};
Published publish(const Rendezvous& rendezvous, uint16_t port, const std::string& secret);

}  // namespace tutti::internal
