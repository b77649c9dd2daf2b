// Puts steps together into a schedule and finds their dependencies: the hazards of memory, and what is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/hazards.h"
#include "algo/schedule.h"

namespace tutti::internal {

class Assembler {
 public:
  // New scratch memory, on a cache line of its own.
  Slice scratch(uint64_t bytes);

  // Where the next scratch memory begins; back to where it once began.
  uint64_t scratch_mark() const { return scratch_used_; }
  void rewind_scratch(uint64_t mark) { scratch_used_ = mark; }

  // Appends a step. Only kind, finish, slice and source of `step` are read; `after` names earlier steps, or kNoStep.
  StepId add(Step step, std::span<const int32_t> peers, std::span<const Operand> operands,
             std::span<const StepId> after);

  size_t step_count() const { return schedule_.steps.size(); }

  // The schedule. The assembler is empty afterwards.
  Schedule take();

 private:
  std::span<const StepId> predecessors_of(StepId step) const;
  void drop_implied(std::vector<StepId>& predecessors) const;

  Schedule schedule_;
  Hazards hazards_;
  uint64_t scratch_used_ = 0;
  std::vector<StepId> predecessors_;          // of all steps, one after the other
  std::vector<size_t> first_predecessor_{0};  // of step i, and the end
};

}  // namespace tutti::internal
