// See cost.h. Pure arithmetic.
#include "algo/cost.h"

#include <algorithm>

namespace tutti::internal {
namespace {

// The problem with the radix for which the formula is least, after prepare(problem) for each radix.
template <class Prepare>
Problem cheapest(Problem problem, const CostParameters& cost, Formula formula, Prepare prepare) {
  Problem best;
  double least = 0;
  for (problem.radix = 2; problem.radix <= kMaxRadix; ++problem.radix) {
    prepare(problem);
    const double us = formula(problem, cost);
    if (problem.radix > 2 && us >= least) continue;
    best = problem;
    least = us;
  }
  return best;
}

// Calls visit(children) for each level of the tree from the leaves up: how many children a rank has whose subtree
// reaches this level.
template <class Visit>
void visit_levels(int size, int radix, Visit visit) {
  int64_t children = 0;
  for (int64_t weight = 1; weight < size; weight *= radix) {
    children += std::min<int64_t>(radix - 1, (size - 1) / weight);
    visit(static_cast<int>(children));
  }
}

}  // namespace

double knomial_reduce_us(const Problem& problem, const CostParameters& cost, double bytes) {
  double us = 0;
  visit_levels(problem.size, problem.radix,
               [&](int children) { us += offer_us(cost, children) + reduce_us(cost, children, bytes); });
  return us;
}

double knomial_broadcast_us(const Problem& problem, const CostParameters& cost, double bytes) {
  const int readers = std::min(problem.radix, problem.size) - 1;
  return rounds(problem.size, problem.radix) * (offer_us(cost, readers) + spread_us(cost, readers, bytes));
}

int knomial_root_children(int size, int radix) {
  int most = 0;
  visit_levels(size, radix, [&](int children) { most = children; });
  return most;
}

void choose_radix(Problem& problem, const CostParameters& cost, Formula formula) {
  problem = cheapest(problem, cost, formula, [](Problem&) {});
}

void choose_radix_and_segment(Problem& problem, const CostParameters& cost, Formula formula, int ways) {
  problem = cheapest(problem, cost, formula, [&](Problem& candidate) {
    candidate.segment_bytes = pipeline_segment(candidate.bytes(), ways * rounds(candidate.size, candidate.radix),
                                               segment_us(cost), cost.beta_us_per_byte);
  });
}

}  // namespace tutti::internal
