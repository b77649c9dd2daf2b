// See pieces.h. Runs where plans are made.
#include "algo/pieces.h"

#include <algorithm>
#include <vector>

#include "algo/rewrite.h"

namespace tutti::internal {
namespace {

class Splitter {
 public:
  Splitter(const Schedule& old, Assembler& assembler, const uint64_t* piece_bytes)
      : old_(old), assembler_(assembler), piece_bytes_(piece_bytes) {}

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

 private:
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
  Assembler& assembler_;
  const uint64_t* piece_bytes_;  // by Buffer
};

}  // namespace

Schedule split_pieces(const Schedule& schedule, uint64_t input_piece_bytes, uint64_t output_piece_bytes) {
  const uint64_t piece_bytes[3] = {input_piece_bytes, output_piece_bytes, 0};
  return rewrite(schedule, [&](Assembler& assembler, const Step& step, const std::vector<StepId>& after) {
    return Splitter(schedule, assembler, piece_bytes).add(step, after);
  });
}

}  // namespace tutti::internal
