// Which algorithm an operation takes: the one whose closed formula gives the least time, or the one that the user asked
// for. A pure function of what all ranks know alike; rank and in_place change nothing.
#pragma once

#include <array>
#include <string_view>

#include "algo/registry.h"
#include "src/base/status.h"

namespace tutti::internal {

// Ranks of one node, by loads and stores; fitted to tutti-perf on a machine with 2 cores (docs/perf.md). alpha is what
// a round costs with posting and completion; gamma is next to nothing, since an operand is combined as it is read.
inline constexpr CostParameters kSharedMemory{
    .alpha_us = 0.25, .gap_us = 0.05, .beta_us_per_byte = 1.0 / 20e3, .gamma_us_per_byte = 1.0 / 1e6};

// The same where ranks take turns on their cores: a round costs changes from rank to rank, and what one rank of a core
// has read the next finds in its cache.
inline constexpr CostParameters kSharedCores{
    .alpha_us = 8, .gap_us = 1, .beta_us_per_byte = 1.0 / 80e3, .gamma_us_per_byte = 1.0 / 1e6};

// Ranks behind RDMA devices of some 100 Gbit/s.
inline constexpr CostParameters kRdma{.alpha_us = 2,
                                      .gap_us = 0.2,
                                      .beta_us_per_byte = 1.0 / 12e3,
                                      .gamma_us_per_byte = 1.0 / 20e3,
                                      .port_us_per_byte = 1.0 / 12e3};

// Ranks behind devices that processors emulate: what a byte costs counts, packet by packet, on both sides, and each
// message costs the processor of its sender and of its receiver. alpha and gap are fitted to tutti-perf with four ranks
// in a guest of tests/roce/lab.
inline constexpr CostParameters kSoftwareRdma{.alpha_us = 28,
                                              .gap_us = 16,
                                              .beta_us_per_byte = 1.0 / 40,
                                              .gamma_us_per_byte = 1.0 / 1e3,
                                              .port_us_per_byte = 1.0 / 40};

// Ranks behind TCP, as UCX uses it where there is no RDMA: system calls on both sides, and a copy on each; to
// combine instead of copying costs next to nothing. Fitted to tutti-perf over two nodes of tests/nodes/lab.
inline constexpr CostParameters kUcx{.alpha_us = 11,
                                     .gap_us = 4,
                                     .beta_us_per_byte = 1.0 / 4e3,
                                     .gamma_us_per_byte = 1.0 / 1e6,
                                     .port_us_per_byte = 1.0 / 4e3};

// The same where ranks take turns on their cores: whatever one does for a message the others wait for.
inline constexpr CostParameters kUcxSharedCores{.alpha_us = 25,
                                                .gap_us = 16,
                                                .beta_us_per_byte = 1.0 / 1e3,
                                                .gamma_us_per_byte = 1.0 / 1e6,
                                                .port_us_per_byte = 1.0 / 1e3};

// The algorithm that was asked for, of each operation; null: none.
using Overrides = std::array<const Algorithm*, kOperationCount>;

// "all_reduce:ring,broadcast:chain"; "" is none. Errors: invalid_argument, with the valid names.
Result<Overrides> parse_overrides(std::string_view text);
// "broadcast, reduce, ...": all of them.
std::string operation_names();

struct Choice {
  const Algorithm* algorithm = nullptr;
  Problem problem;  // with segment_bytes, radix and composition
  double cost_us = 0;
};

// The algorithm as it would be taken for this problem. One that knows nothing of nodes costs what messages across cost
// where the ranks are on several.
Choice priced(const Algorithm& algorithm, const Problem& problem, const Costs& costs);

// An override that does not fit the problem is passed over: the choice then names another algorithm.
Choice select(const Problem& problem, const Costs& costs, const Overrides& overrides = {});

// The schedule of problem.rank.
Schedule build(const Choice& choice);

}  // namespace tutti::internal
