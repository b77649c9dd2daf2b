// Whether packets really travel between this rank and others, tried before anybody connects.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"

namespace tutti::internal {

// What a rank has heard of another. A set has a bit for each path between the two; both ends number them alike.
struct Hearing {
  uint32_t paths = 0;  // all that their addresses promise
  // Of these; on others packets alone do not find the way, or an end has no queue for them.
  uint32_t tried = 0;
  uint32_t heard = 0;   // of those: a packet of the other's has come here
  std::string trouble;  // of those that were tried: where nothing came, and what was seen. "": they are fine
  std::string untried;  // why others were not

  bool operator==(const Hearing&) const = default;
};

// One thread at a time. Belongs to a transport, which outlives it.
class Prober {
 public:
  struct Peer {
    int rank = -1;
    std::string_view address;
  };
  virtual ~Prober() = default;

  // Exchanges packets with all of them at once, who do the same with us, and returns what was heard of each: when all
  // have been heard and have heard us, else after about a second, and never after `deadline`. Once.
  virtual std::vector<Hearing> probe(std::span<const Peer> peers, Deadline deadline) = 0;
  // The same with what has come since. Does not wait.
  virtual std::vector<Hearing> listen() = 0;
};

}  // namespace tutti::internal
