// Schedules made of others, step by step. Invariant: a new step waits for all that stands for what the old step waited
// for, and for the hazards of the memory it really touches. Messages stay in their order. Runs where plans are made.
#pragma once

#include <cstddef>
#include <vector>

#include "algo/assembler.h"
#include "algo/schedule.h"

namespace tutti::internal {

// `add(assembler, step, after)` adds what stands for an old step, after those new ones, and returns the new steps after
// which it is done. Scratch keeps its offsets; more of it is the assembler's to give.
template <class Add>
Schedule rewrite(const Schedule& old, Add&& add) {
  std::vector<std::vector<size_t>> predecessors(old.steps.size());
  for (size_t id = 0; id < old.steps.size(); ++id)
    for (const uint32_t successor : old.successors_of(old.steps[id])) predecessors[successor].push_back(id);
  Assembler assembler;
  assembler.scratch(old.scratch_bytes);
  std::vector<std::vector<StepId>> ends;  // for each old step so far
  for (size_t id = 0; id < old.steps.size(); ++id) {
    std::vector<StepId> after;
    for (const size_t predecessor : predecessors[id])
      after.insert(after.end(), ends[predecessor].begin(), ends[predecessor].end());
    ends.push_back(add(assembler, old.steps[id], after));
  }
  return assembler.take();
}

}  // namespace tutti::internal
