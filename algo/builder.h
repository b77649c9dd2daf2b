// Writes a schedule. An algorithm reads as the sequential program of one rank; the builder finds the dependencies:
// a step waits for each earlier step that wrote what it reads, or read or wrote what it writes. What is independent
// runs at once.
//
// In-place calls need no care of the algorithm: input and output slices that are the same memory are made the same here
// (see tutti.h for what in place means per operation), and a copy of a slice onto itself vanishes.
// Empty slices are allowed everywhere; a message of 0 bytes is still sent, a local step of 0 bytes vanishes. So does a
// send to nobody, and the reduction of one local operand is a copy: one rank alone needs no care either.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "algo/problem.h"
#include "algo/schedule.h"
#include "algo/scope.h"

namespace tutti::internal {

class Assembler;

class Builder {
 public:
  explicit Builder(const Problem& problem);
  ~Builder();

  const Problem& problem() const { return scope_ == nullptr ? problem_ : scope_->problem; }

  Slice input(uint64_t offset, uint64_t bytes) const;
  Slice output(uint64_t offset, uint64_t bytes) const;
  // New scratch memory of this operation.
  Slice scratch(uint64_t bytes);
  // The slice of the input for peers to read while this rank's output is written: itself, or a copy in scratch where
  // the two share memory. For ranks that read each other at the same moment: each would wait for the other's reading
  // before it writes, and neither would read.
  Slice stable(Slice input);

  // Runs another algorithm's builder as a part of this schedule, where this rank is one of the scope's members: for it,
  // problem(), ranks, input and output are the scope's. All members run it at the same place among their messages.
  // Nothing deadlocks that does not deadlock alone: a step waits for steps of its own scope and of those before only.
  // The last step that it added, or kNoStep.
  StepId within(const Scope& scope, void (*build)(Builder&));

  // Scratch is used again: what is taken after rewind(mark) may be what was taken since the mark, and the steps that
  // write it wait for those that still read it.
  uint64_t scratch_mark() const;
  void rewind_scratch(uint64_t mark);

  // `after`: order that the data does not show (a barrier's rounds, a bound on what is in flight).
  StepId send(std::span<const int32_t> peers, Slice slice, std::span<const StepId> after = {});
  StepId send(int32_t peer, Slice slice, std::span<const StepId> after = {});
  StepId recv(int32_t peer, Slice slice, std::span<const StepId> after = {});
  // More than kMaxOperands operands are combined in several passes, in order.
  StepId reduce(std::span<const Operand> operands, Slice slice, Finish finish, std::span<const StepId> after = {});
  StepId copy(Slice source, Slice slice);

  // The schedule. The builder is empty afterwards.
  Schedule take();

 private:
  bool input_shares_output() const;
  // A slice as the memory that it is: one slice outside of a scope.
  std::vector<Slice> places(const Slice& slice) const;
  // The slice in one place, copied to scratch if it is not.
  Slice gathered(const Slice& slice);
  StepId copy_places(std::span<const Slice> sources, std::span<const Slice> slices);
  StepId add(Step step, std::span<const int32_t> peers, std::span<const Operand> operands,
             std::span<const StepId> after);
  StepId add_in_scope(Step step, std::span<const int32_t> peers, std::span<const Operand> operands,
                      std::span<const StepId> after);

  Problem problem_;
  Aliasing aliasing_;
  std::unique_ptr<Assembler> assembler_;
  const Scope* scope_ = nullptr;
};

// Bounds how many steps of a kind are in flight: each waits for the one `width` before it.
//   window.add(builder.recv(peer, slice, window.after()));
class Window {
 public:
  explicit Window(size_t width) : steps_(width, kNoStep) {}
  std::span<const StepId> after() const { return {&steps_[next_], 1}; }
  void add(StepId step) {
    steps_[next_] = step;
    next_ = (next_ + 1) % steps_.size();
  }

 private:
  std::vector<StepId> steps_;  // the last ones, a ring
  size_t next_ = 0;
};

}  // namespace tutti::internal
