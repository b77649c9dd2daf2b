// What can be proved of one rank's schedule alone: that it is well formed, and that its steps do not race.
#pragma once

#include "algo/problem.h"
#include "algo/schedule.h"
#include "src/base/status.h"

namespace tutti::internal::proof {

Status check_rank(const Problem& problem, const Schedule& schedule);

}  // namespace tutti::internal::proof
