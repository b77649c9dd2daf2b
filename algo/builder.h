// Writes a schedule. An algorithm reads as the sequential program of one rank; the builder finds the dependencies:
// a step waits for each earlier step that wrote what it reads, or read or wrote what it writes. What is independent
// runs at once.
//
// In-place calls need no care of the algorithm: input and output slices that are the same memory are made the same here
// (see tutti.h for what in place means per operation), and a copy of a slice onto itself vanishes.
// Empty slices are allowed everywhere; a message of 0 bytes is still sent, a local step of 0 bytes vanishes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "algo/problem.h"
#include "algo/schedule.h"

namespace tutti::internal {

// A step that was written, for explicit order; kNoStep where a step vanished.
using StepId = int32_t;
inline constexpr StepId kNoStep = -1;

enum class Finish : bool { no, yes };

class Builder {
 public:
  explicit Builder(const Problem& problem);
  ~Builder();

  const Problem& problem() const { return problem_; }

  Slice input(uint64_t offset, uint64_t bytes) const;
  Slice output(uint64_t offset, uint64_t bytes) const;
  // New scratch memory of this operation.
  Slice scratch(uint64_t bytes);

  // `after`: order that the data does not show (a barrier's rounds, a bound on what is in flight).
  StepId send(std::span<const int32_t> peers, Slice slice, std::span<const StepId> after = {});
  StepId send(int32_t peer, Slice slice, std::span<const StepId> after = {});
  StepId recv(int32_t peer, Slice slice, std::span<const StepId> after = {});
  StepId reduce(std::span<const Operand> operands, Slice slice, Finish finish);
  StepId copy(Slice source, Slice slice);

  // The schedule. The builder is empty afterwards.
  Schedule take();

 private:
  class Hazards;
  // ... (to be written by the room of algo)
  Problem problem_;
};

}  // namespace tutti::internal
