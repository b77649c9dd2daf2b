// See cost.h. Pure arithmetic.
#include "algo/cost.h"

namespace tutti::internal {

int best_radix(Problem problem, const CostParameters& cost, double (*formula)(const Problem&, const CostParameters&)) {
  int best = 2;
  double least = 0;
  for (int radix = 2; radix <= kMaxRadix; ++radix) {
    problem.radix = radix;
    const double us = formula(problem, cost);
    if (radix > 2 && us >= least) continue;
    best = radix;
    least = us;
  }
  return best;
}

}  // namespace tutti::internal
