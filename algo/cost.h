// Terms that the closed cost formulas share. The ranks read each other's memory: what one rank offers is read by all
// its readers at the same time, at beta each, and a reduction reads its operands where they lie. So sending to many
// costs one gap more for each, and not its bytes; taking from many costs their bytes.
#pragma once

#include <cmath>

#include "algo/partition.h"
#include "algo/problem.h"
#include "algo/registry.h"
#include "algo/shapes/powers.h"

namespace tutti::internal {

// What one more segment of a pipeline costs: its messages are posted and completed while others move.
inline double segment_us(const CostParameters& cost) { return 2 * cost.gap_us; }

// Offering one slice to `readers` ranks, and one of them taking it.
inline double offer_us(const CostParameters& cost, int readers) {
  return readers < 1 ? 0 : cost.alpha_us + (readers - 1) * cost.gap_us;
}
inline double move_us(const CostParameters& cost, double bytes) { return bytes * cost.beta_us_per_byte; }
// Combining: reading `peers` messages of `bytes` and writing the result.
inline double reduce_us(const CostParameters& cost, int peers, double bytes) {
  return peers * bytes * (cost.beta_us_per_byte + cost.gamma_us_per_byte);
}

// How many segments `bytes` make.
inline double segment_count(double bytes, uint64_t segment_bytes) {
  const auto segment = static_cast<double>(segment_bytes);
  return segment_bytes == 0 || bytes <= segment ? 1 : std::ceil(bytes / segment);
}

// A pipeline of `depth` hops over `bytes`: each hop takes hop_us(bytes of a segment), and the segments follow each
// other.
template <class HopCost>
double pipeline_us(const CostParameters& cost, double bytes, uint64_t segment_bytes, int depth, HopCost hop_us) {
  const double count = segment_count(bytes, segment_bytes);
  return depth == 0
             ? 0
             : depth * hop_us(bytes / count) + (count - 1) * (hop_us(bytes / count) - cost.alpha_us + segment_us(cost));
}

// The radix of 2 .. 8 for which the formula is least.
inline constexpr int kMaxRadix = 8;
int best_radix(Problem problem, const CostParameters& cost, double (*formula)(const Problem&, const CostParameters&));

// The tune of an algorithm that has a radix and no segments.
template <double (*kFormula)(const Problem&, const CostParameters&)>
void tune_radix(Problem& problem, const CostParameters& cost) {
  problem.radix = best_radix(problem, cost, kFormula);
}

}  // namespace tutti::internal
