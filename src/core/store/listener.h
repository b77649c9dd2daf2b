// The sockets on which a store waits for connections: all its addresses, one port.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/store/socket.h"

namespace tutti::internal {

struct Listeners {
  std::vector<Socket> sockets;
  uint16_t port = 0;
};

struct Listening {
  Listeners listeners;  // empty where it failed
  int error = 0;        // the system's, 0: listening
  std::string what;

  bool ok() const { return error == 0; }
  Status status() const { return ok() ? Status() : Status::system(Code::out_of_resources, what, error); }
};

enum class Reach { loopback, everywhere };

// Port 0: one that is free. A port that a former process has just left can be taken again at once.
Listening listen_on(uint16_t port, Reach reach);
// On these addresses and on loopback.
Listening listen_at(uint16_t port, const std::vector<Address>& addresses);
// What to say when each port of TUTTI_PORT_RANGE is in use.
std::string no_free_port(const std::vector<uint16_t>& range);

}  // namespace tutti::internal
