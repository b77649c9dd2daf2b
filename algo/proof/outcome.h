// Whether what the ranks hold at the end is what tutti.h says.
#pragma once

#include <span>

#include "algo/problem.h"
#include "algo/proof/simulation.h"

namespace tutti::internal::proof {

Status check_outcome(std::span<const Problem> problems, const Simulation& simulation, const Expressions& expressions);

}  // namespace tutti::internal::proof
