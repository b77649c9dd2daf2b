// See builder.h. Invariant: no two names of the same memory ever reach the assembler, so that its hazards see all.
#include "algo/builder.h"

#include <algorithm>
#include <vector>

#include "algo/assembler.h"
#include "src/base/kernel.h"

namespace tutti::internal {

Builder::Builder(const Problem& problem)
    : problem_(problem), aliasing_(aliasing(problem)), assembler_(std::make_unique<Assembler>()) {}
Builder::~Builder() = default;

Slice Builder::input(uint64_t offset, uint64_t bytes) const {
  if (aliasing_.kind == Aliasing::Kind::input_in_output) return {Buffer::output, aliasing_.offset + offset, bytes};
  return {Buffer::input, offset, bytes};
}

Slice Builder::output(uint64_t offset, uint64_t bytes) const {
  if (aliasing_.kind == Aliasing::Kind::output_in_input) return {Buffer::input, aliasing_.offset + offset, bytes};
  return {Buffer::output, offset, bytes};
}

Slice Builder::scratch(uint64_t bytes) { return assembler_->scratch(bytes); }

Slice Builder::stable(Slice input) {
  if (aliasing_.kind == Aliasing::Kind::none || problem_.size == 1) return input;
  const Slice saved = scratch(input.bytes);
  copy(input, saved);
  return saved;
}

StepId Builder::send(std::span<const int32_t> peers, Slice slice, std::span<const StepId> after) {
  if (peers.empty()) return kNoStep;
  return assembler_->add({.kind = StepKind::send, .slice = slice}, peers, {}, after);
}

StepId Builder::send(int32_t peer, Slice slice, std::span<const StepId> after) {
  return send(std::span(&peer, 1), slice, after);
}

StepId Builder::recv(int32_t peer, Slice slice, std::span<const StepId> after) {
  return assembler_->add({.kind = StepKind::recv, .slice = slice}, std::span(&peer, 1), {}, after);
}

StepId Builder::reduce(std::span<const Operand> operands, Slice slice, Finish finish, std::span<const StepId> after) {
  if (operands.size() == 1 && operands[0].peer == Operand::kLocal) return copy(operands[0].slice, slice);
  const bool all_local =
      std::all_of(operands.begin(), operands.end(), [](const Operand& o) { return o.peer == Operand::kLocal; });
  if (all_local && slice.bytes == 0) return kNoStep;

  const auto pass = [&](std::span<const Operand> some, Slice result, bool finished) {
    const Step step{.kind = StepKind::reduce, .finish = finished, .slice = result};
    return assembler_->add(step, {}, some, after);
  };
  const size_t most = kMaxOperands;
  if (operands.size() <= most) return pass(operands, slice, finish == Finish::yes);

  // Partial results stay out of `slice`: it may be an operand of a later pass.
  const Slice partial = scratch(slice.bytes);
  pass(operands.first(most), partial, false);
  for (operands = operands.subspan(most);;) {
    std::vector<Operand> next{{.slice = partial}};
    const auto some = operands.first(std::min(operands.size(), most - 1));
    next.insert(next.end(), some.begin(), some.end());
    operands = operands.subspan(some.size());
    if (operands.empty()) return pass(next, slice, finish == Finish::yes);
    pass(next, partial, false);
  }
}

StepId Builder::copy(Slice source, Slice slice) {
  if (slice.bytes == 0 || source == slice) return kNoStep;
  return assembler_->add({.kind = StepKind::copy, .slice = slice, .source = source}, {}, {}, {});
}

Schedule Builder::take() { return assembler_->take(); }

}  // namespace tutti::internal
