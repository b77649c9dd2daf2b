// What node-first algorithms cost, and how they are tuned: the cheapest of some numbers of lanes and some lengths of
// segment, each stage by the flat algorithm that is cheapest for it. Uneven nodes are priced as if all were as large as
// the largest, and a lane's owners by the smallest.
#pragma once

#include "algo/registry.h"

namespace tutti::internal::node_first {

// A stage of one segment: its time, and how long the busiest rank works at it: what it cannot overlap with itself.
struct Price {
  double us = 0, busy_us = 0;
};

// What a candidate's stages cost.
struct Prices {
  Price in, across, out;
};

class Candidate {
 public:
  Candidate(const Problem& of, const Costs& at) : problem(of), costs(at) {}

  Problem problem;  // with lanes and segment_bytes; stages are filled as they are priced
  const Costs& costs;

  int lanes() const { return problem.composition.lanes; }
  int nodes() const;
  int ranks() const;  // of a node
  // How many lanes one rank owns at most, and how many blocks of a node one lane carries.
  int lanes_per_rank() const;
  int blocks_per_lane() const;
  // Bytes of a segment of a lane's part of the vector, or of a block.
  double part_bytes() const;
  double block_bytes() const;

  // The cheapest algorithm for the stage, noted in the composition, done `times` times side by side. Inside, with
  // several lanes it is the linear one: all ranks are as busy as any, so that trees gain nothing.
  Price in(Operation operation, double bytes, int times);
  Price across(Operation operation, double bytes, int times);
  Price out(Operation operation, double bytes, int times);

 private:
  Price stage(Stage& stage, Operation operation, int size, double bytes, int times, const CostParameters& cost,
              bool linear) const;
  bool is_segmented() const;
};

// Fills segment_bytes and composition for the least price; its microseconds. `cut` says what segments are cut from.
enum class Cut : bool { vector, blocks };
double cheapest(Problem& problem, const Costs& costs, Cut cut, Prices (*prices)(Candidate&));

}  // namespace tutti::internal::node_first
