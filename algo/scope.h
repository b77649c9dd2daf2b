// A part of an operation that is itself an operation, on some of the ranks: what an algorithm is given that runs inside
// another one's schedule (Builder::within).
//
//   all_gather of ranks 1 and 5, whose blocks are the second and the sixth of the whole output:
//     members  1 5        rank 1 of the group is rank 0 here, rank 5 is rank 1
//     output   [b,2b) [5b,6b)    here [0,2b)
#pragma once

#include <span>
#include <vector>

#include "algo/problem.h"
#include "algo/schedule.h"

namespace tutti::internal {

struct Scope {
  // What takes place here. Rank, size and root are numbers in `members`; in_place means nothing.
  Problem problem;
  std::vector<int> members;
  // Where this rank's input and output lie: slices of the whole operation's memory, one after the other. Empty where
  // the rank has none. An algorithm's slice that passes from one to the next goes through scratch.
  std::vector<Slice> input, output;
  // Whether a reduction is complete when it is complete here.
  Finish finish = Finish::yes;
  // Each step here waits for these.
  std::vector<StepId> after;
};

}  // namespace tutti::internal
