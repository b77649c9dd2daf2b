// All algorithms, one line each: which operation, what it is called, how it is built and what it costs. The lines stand
// in the collective's file, below the builders: a new algorithm is one builder function and one line there.
#pragma once

#include <span>

#include "algo/builder.h"
#include "algo/problem.h"
#include "algo/schedule.h"

namespace tutti::internal {

// What a message and a byte cost between the ranks at hand (LogGP): microseconds, and microseconds per byte.
struct CostParameters {
  double alpha_us;           // latency of one message
  double gap_us;             // between messages of one sender
  double beta_us_per_byte;   // transfer
  double gamma_us_per_byte;  // reduction
  // What a byte costs the port of its sender, for each reader. 0: readers load it where it lies, all at the same time.
  double port_us_per_byte = 0;
};

// The same inside a node and across nodes.
struct Costs {
  CostParameters within, across;

  Costs(const CostParameters& inside, const CostParameters& outside) : within(inside), across(outside) {}
  Costs(const CostParameters& everywhere) : within(everywhere), across(everywhere) {}  // NOLINT: as good as two
};

struct Algorithm {
  Operation operation;
  const char* name;
  // Writes the schedule of problem().rank.
  void (*build)(Builder&);
  // Closed formula, microseconds. Like tune and fits, it looks neither at rank nor at in_place: all ranks decide alike.
  double (*cost)(const Problem&, const CostParameters&);
  // Fills segment_bytes and radix for this problem; null where the algorithm has neither.
  void (*tune)(Problem&, const CostParameters&) = nullptr;
  // Whether it can do this at all (group size limits and so on); null: always.
  bool (*fits)(const Problem&) = nullptr;
  // Of an algorithm composed of others: fills segment_bytes and composition, and returns the microseconds. Its cost and
  // tune are null.
  double (*compose)(Problem&, const Costs&) = nullptr;
};

// Ordered by operation; where two cost the same, the earlier one is taken.
std::span<const Algorithm> algorithms();
std::span<const Algorithm> algorithms(Operation operation);

}  // namespace tutti::internal
