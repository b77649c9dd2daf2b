// Terms that the closed cost formulas share. The ranks read each other's memory: what one rank offers is read by all
// its readers at the same time, at beta each, and a reduction reads its operands where they lie. So sending to many
// costs one gap more for each, and not its bytes; taking from many costs their bytes. Where a byte goes through the
// sender's port once for each reader, port_us_per_byte says what that costs.
#pragma once

#include <algorithm>
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
// The same where the sender has `readers` of so many bytes each: the slower of a reader and the port.
inline double spread_us(const CostParameters& cost, int readers, double bytes) {
  return bytes * std::max(cost.beta_us_per_byte, readers * cost.port_us_per_byte);
}
// Combining: reading `peers` messages of `bytes` and writing the result.
inline double reduce_us(const CostParameters& cost, int peers, double bytes) {
  return peers * bytes * (cost.beta_us_per_byte + cost.gamma_us_per_byte);
}

// How many segments `bytes` make.
inline double segment_count(double bytes, uint64_t segment_bytes) {
  const auto segment = static_cast<double>(segment_bytes);
  return segment_bytes == 0 || bytes <= segment ? 1 : std::ceil(bytes / segment);
}

// A pipeline: the first segment goes the whole way, first_us(its bytes); each later one follows when the busiest rank
// has done its share of the one before, later_us(its bytes).
template <class First, class Later>
double pipeline_us(const CostParameters& cost, const Problem& problem, First first_us, Later later_us) {
  if (problem.size == 1) return 0;
  const auto bytes = static_cast<double>(problem.bytes());
  const double count = segment_count(bytes, problem.segment_bytes);
  return first_us(bytes / count) + (count - 1) * (segment_us(cost) + later_us(bytes / count));
}

// The k-nomial tree of problem.size and radix: one message's way up, where each rank combines all that its children
// have, and one message's way down.
double knomial_reduce_us(const Problem& problem, const CostParameters& cost, double bytes);
double knomial_broadcast_us(const Problem& problem, const CostParameters& cost, double bytes);
// How many children the root has: more than any other rank.
int knomial_root_children(int size, int radix);

inline constexpr int kMaxRadix = 8;
using Formula = double (*)(const Problem&, const CostParameters&);
// Sets the radix of 2 .. kMaxRadix for which the formula is least.
void choose_radix(Problem& problem, const CostParameters& cost, Formula formula);
// The same for a pipeline down or up a k-nomial tree, and its segment; `ways`: how often it passes the tree.
void choose_radix_and_segment(Problem& problem, const CostParameters& cost, Formula formula, int ways);

// The tune of an algorithm that has a radix and no segments, and of one that passes a k-nomial tree.
template <Formula kFormula>
void tune_radix(Problem& problem, const CostParameters& cost) {
  choose_radix(problem, cost, kFormula);
}
template <Formula kFormula, int kWays>
void tune_knomial(Problem& problem, const CostParameters& cost) {
  choose_radix_and_segment(problem, cost, kFormula, kWays);
}

}  // namespace tutti::internal
