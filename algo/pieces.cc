// See pieces.h. Invariant: a new step waits for all that stands for what the old step waited for, and for the hazards
// of the memory it really touches. Runs where plans are made.
#include "algo/pieces.h"

#include <algorithm>
#include <vector>

#include "algo/assembler.h"

namespace tutti::internal {
namespace {

class Splitter {
 public:
  Splitter(const Schedule& old, uint64_t input_piece_bytes, uint64_t output_piece_bytes)
      : old_(old), piece_bytes_{input_piece_bytes, output_piece_bytes, 0}, predecessors_(old.steps.size()) {
    assembler_.scratch(old.scratch_bytes);  // keeps its offsets
    for (size_t id = 0; id < old.steps.size(); ++id)
      for (const uint32_t successor : old.successors_of(old.steps[id])) predecessors_[successor].push_back(id);
  }

  Schedule split() {
    for (size_t id = 0; id < old_.steps.size(); ++id) {
      std::vector<StepId> after;
      for (const size_t predecessor : predecessors_[id])
        after.insert(after.end(), ends_[predecessor].begin(), ends_[predecessor].end());
      ends_.push_back(add(old_.steps[id], after));
    }
    return assembler_.take();
  }

 private:
  // Adds what stands for the old step; returns the new steps after which it is done.
  std::vector<StepId> add(const Step& step, const std::vector<StepId>& after) {
    switch (step.kind) {
      case StepKind::send: {
        const Slice whole = gathered(step.slice, after);
        return {assembler_.add({.kind = StepKind::send, .slice = whole}, old_.peers_of(step), {}, after)};
      }
      case StepKind::copy: return copy(step.source, step.slice, after);
      case StepKind::recv:
      case StepKind::reduce: break;
    }
    std::vector<Operand> operands(old_.operands_of(step).begin(), old_.operands_of(step).end());
    for (Operand& operand : operands)
      if (operand.peer == Operand::kLocal) operand.slice = gathered(operand.slice, after);
    const bool whole = !crosses(step.slice);
    const Slice result = whole ? step.slice : assembler_.scratch(step.slice.bytes);
    const StepId id = assembler_.add({.kind = step.kind, .finish = step.finish, .slice = result}, old_.peers_of(step),
                                     operands, after);
    return whole ? std::vector{id} : copy(result, step.slice, {});
  }

  // The slice, or a copy of it in scratch if it lies in several pieces.
  Slice gathered(const Slice& slice, const std::vector<StepId>& after) {
    if (!crosses(slice)) return slice;
    const Slice whole = assembler_.scratch(slice.bytes);
    copy(slice, whole, after);
    return whole;
  }

  // Copies, cut where source or result passes a piece's end.
  std::vector<StepId> copy(Slice source, Slice slice, const std::vector<StepId>& after) {
    std::vector<StepId> steps;
    while (slice.bytes > 0) {
      const uint64_t bytes = std::min(within_piece(source), within_piece(slice));
      const Step step{.kind = StepKind::copy,
                      .slice = {slice.buffer, slice.offset, bytes},
                      .source = {source.buffer, source.offset, bytes}};
      steps.push_back(assembler_.add(step, {}, {}, after));
      for (Slice* rest : {&source, &slice}) {
        rest->offset += bytes;
        rest->bytes -= bytes;
      }
    }
    return steps;
  }

  // How many bytes of the slice lie in its first piece.
  uint64_t within_piece(const Slice& slice) const {
    const uint64_t piece = piece_bytes_[static_cast<size_t>(slice.buffer)];
    return piece == 0 ? slice.bytes : std::min(slice.bytes, piece - slice.offset % piece);
  }
  bool crosses(const Slice& slice) const { return within_piece(slice) < slice.bytes; }

  const Schedule& old_;
  const uint64_t piece_bytes_[3];                  // by Buffer
  std::vector<std::vector<size_t>> predecessors_;  // of each old step
  std::vector<std::vector<StepId>> ends_;          // for each old step so far: the new ones that stand for its end
  Assembler assembler_;
};

}  // namespace

Schedule split_pieces(const Schedule& schedule, uint64_t input_piece_bytes, uint64_t output_piece_bytes) {
  return Splitter(schedule, input_piece_bytes, output_piece_bytes).split();
}

}  // namespace tutti::internal
