// How the ranks of a world come to know where its store is, and what its secret is:
//
//   address   MASTER_ADDR and MASTER_PORT, or "host:port": rank 0 (or the launcher) listens there. Without a secret it
//             listens on loopback alone, and the address must be this machine's own; with one, on all addresses,
//             because a name may mean another of them to each rank. Under torchrun, which has a store of its own at
//             MASTER_PORT, rank 0 takes the first free one of the 16 ports after it, and the others try these in turn.
//             A port that is taken otherwise is an error: the others would not look elsewhere.
//   file      rank 0 writes addresses and a fresh secret into a file that only its user can read
//   memory    ranks are threads of one process: the same by a table in its memory
//   alone     a world of one needs no store
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/status.h"
#include "src/core/store/interfaces.h"

namespace tutti::internal {

struct Rendezvous {
  enum class Kind { alone, address, file, memory };

  Kind kind = Kind::alone;
  int rank = 0;
  int size = 1;
  bool serve = false;           // this rank hosts the store
  bool served_by_rank = false;  // rank 0 does; else the launcher
  std::string secret;           // address: "" where there is none
  std::string host;             // address
  std::vector<uint16_t> ports;  // address: to be tried in turn; file: of TUTTI_PORT_RANGE, the first free one is taken
  InterfaceChoice interfaces;   // where the store listens, and by which it is reached
  std::string name;             // file: its path; memory: its name
  std::string label;            // keeps jobs without a secret apart

  // "127.0.0.1:29500", "[fd00::1]:29500", "file:/tmp/x": for messages.
  std::string text() const;
};

// The label of a job that meets at MASTER_PORT, for whoever serves its store.
std::string port_label(uint16_t port);

// What the caller gave goes before the environment (see tutti_init_options): rank -1, size 0 and store "" are not
// given. Errors: invalid_argument, naming the setting, what was found and what is allowed.
Result<Rendezvous> find_rendezvous(int rank, int size, const std::string& store, const Config& config);

}  // namespace tutti::internal
