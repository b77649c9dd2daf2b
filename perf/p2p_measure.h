// One size of one test: checked, warmed up, measured, and checked again.
#pragma once

#include <cstdint>
#include <optional>

#include "buffers.h"
#include "p2p_exchange.h"
#include "p2p_statistics.h"

namespace tutti::perf {

// Messages per microsecond, over both directions where there are two.
struct Rates {
  double peak, average;
};

struct P2pRow {
  uint64_t bytes;
  uint64_t iterations;
  uint64_t depth;
  std::optional<Latency> latency;  // rank 0 has it, of a test that measures latency
  std::optional<Rates> rates;      // of a test that measures bandwidth
  uint64_t checked, wrong;         // messages, and bytes of them, on both ranks
};

// The memory of this rank for all sizes.
class P2pMemory {
 public:
  P2pMemory(tutti_group* group, const P2pOptions& options);
  // With as many slots for what goes as for what comes.
  Side side(uint64_t bytes) const;

  static double needed_bytes(const P2pOptions& options);

 private:
  tutti_group* group_;
  const P2pOptions& options_;
  size_t half_;  // bytes for one direction
  Region region_;
};

// Both ranks call it, for the same size. *number is that of the next message, and goes on over the sizes. Wrong
// bytes are counted, and the first of them is said on stderr.
P2pRow measure_p2p(const P2pOptions& options, const P2pMemory& memory, uint64_t bytes, uint64_t* number);

}  // namespace tutti::perf
