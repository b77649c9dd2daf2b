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
  if (scope_ != nullptr) return {Buffer::input, offset, bytes};
  if (aliasing_.kind == Aliasing::Kind::input_in_output) return {Buffer::output, aliasing_.offset + offset, bytes};
  return {Buffer::input, offset, bytes};
}

Slice Builder::output(uint64_t offset, uint64_t bytes) const {
  if (scope_ != nullptr) return {Buffer::output, offset, bytes};
  if (aliasing_.kind == Aliasing::Kind::output_in_input) return {Buffer::input, aliasing_.offset + offset, bytes};
  return {Buffer::output, offset, bytes};
}

Slice Builder::scratch(uint64_t bytes) { return assembler_->scratch(bytes); }

uint64_t Builder::scratch_mark() const { return assembler_->scratch_mark(); }
void Builder::rewind_scratch(uint64_t mark) { assembler_->rewind_scratch(mark); }

bool Builder::input_shares_output() const {
  if (scope_ == nullptr) return aliasing_.kind != Aliasing::Kind::none;
  const auto overlap = [](const Slice& a, const Slice& b) {
    return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  };
  return std::ranges::any_of(scope_->input, [&](const Slice& in) {
    return std::ranges::any_of(scope_->output, [&](const Slice& out) { return overlap(in, out); });
  });
}

Slice Builder::stable(Slice input) {
  if (problem().size == 1 || !input_shares_output()) return input;
  const Slice saved = scratch(input.bytes);
  copy(input, saved);
  return saved;
}

StepId Builder::within(const Scope& scope, void (*build)(Builder&)) {
  const size_t before = assembler_->step_count();
  scope_ = &scope;
  build(*this);
  scope_ = nullptr;
  const size_t count = assembler_->step_count();
  return count == before ? kNoStep : static_cast<StepId>(count - 1);
}

std::vector<Slice> Builder::places(const Slice& slice) const {
  if (scope_ == nullptr || slice.buffer == Buffer::scratch) return {slice};
  std::vector<Slice> found;
  uint64_t begin = 0;  // of the place, as the scope counts
  for (const Slice& place : slice.buffer == Buffer::input ? scope_->input : scope_->output) {
    const uint64_t from = std::max(begin, slice.offset),
                   end = std::min(begin + place.bytes, slice.offset + slice.bytes);
    const Slice part{place.buffer, place.offset + from - begin, from < end ? end - from : 0};
    begin += place.bytes;
    if (part.bytes == 0) continue;
    const bool follows =
        !found.empty() && found.back().buffer == part.buffer && found.back().offset + found.back().bytes == part.offset;
    if (follows)
      found.back().bytes += part.bytes;
    else
      found.push_back(part);
  }
  if (found.empty()) found.emplace_back();
  return found;
}

Slice Builder::gathered(const Slice& slice) {
  const auto sources = places(slice);
  if (sources.size() == 1) return sources[0];
  const Slice whole = scratch(slice.bytes);
  copy_places(sources, {&whole, 1});
  return whole;
}

// Copies, cut where either side is.
StepId Builder::copy_places(std::span<const Slice> sources, std::span<const Slice> slices) {
  const auto after = scope_ == nullptr ? std::span<const StepId>() : scope_->after;
  uint64_t read = 0, written = 0;  // of the first ones
  StepId last = kNoStep;
  const auto advance = [](std::span<const Slice>& places, uint64_t& done, uint64_t bytes) {
    done += bytes;
    if (done < places[0].bytes) return;
    places = places.subspan(1);
    done = 0;
  };
  while (!sources.empty() && !slices.empty()) {
    const uint64_t bytes = std::min(sources[0].bytes - read, slices[0].bytes - written);
    const Slice from{sources[0].buffer, sources[0].offset + read, bytes};
    const Slice to{slices[0].buffer, slices[0].offset + written, bytes};
    if (bytes > 0 && from != to)
      last = assembler_->add({.kind = StepKind::copy, .slice = to, .source = from}, {}, {}, after);
    advance(sources, read, bytes);
    advance(slices, written, bytes);
  }
  return last;
}

StepId Builder::add(Step step, std::span<const int32_t> peers, std::span<const Operand> operands,
                    std::span<const StepId> after) {
  return scope_ == nullptr ? assembler_->add(step, peers, operands, after) : add_in_scope(step, peers, operands, after);
}

StepId Builder::add_in_scope(Step step, std::span<const int32_t> peers, std::span<const Operand> operands,
                             std::span<const StepId> after) {
  const auto& members = scope_->members;
  std::vector<int32_t> real_peers(peers.begin(), peers.end());
  for (int32_t& peer : real_peers) peer = members[static_cast<size_t>(peer)];
  std::vector<Operand> real_operands(operands.begin(), operands.end());
  for (Operand& operand : real_operands) {
    if (operand.peer == Operand::kLocal)
      operand.slice = gathered(operand.slice);
    else
      operand.peer = members[static_cast<size_t>(operand.peer)];
  }
  std::vector<StepId> all_after(after.begin(), after.end());
  all_after.insert(all_after.end(), scope_->after.begin(), scope_->after.end());
  step.finish = step.finish && scope_->finish == Finish::yes;

  if (step.kind == StepKind::send) {
    step.slice = gathered(step.slice);
    return assembler_->add(step, real_peers, real_operands, all_after);
  }
  const auto results = places(step.slice);
  step.slice = results.size() == 1 ? results[0] : scratch(step.slice.bytes);
  const StepId id = assembler_->add(step, real_peers, real_operands, all_after);
  if (results.size() > 1) copy_places({&step.slice, 1}, results);
  return id;
}

StepId Builder::send(std::span<const int32_t> peers, Slice slice, std::span<const StepId> after) {
  if (peers.empty()) return kNoStep;
  return add({.kind = StepKind::send, .slice = slice}, peers, {}, after);
}

StepId Builder::send(int32_t peer, Slice slice, std::span<const StepId> after) {
  return send(std::span(&peer, 1), slice, after);
}

StepId Builder::recv(int32_t peer, Slice slice, std::span<const StepId> after) {
  return add({.kind = StepKind::recv, .slice = slice}, std::span(&peer, 1), {}, after);
}

StepId Builder::reduce(std::span<const Operand> operands, Slice slice, Finish finish, std::span<const StepId> after) {
  if (operands.size() == 1 && operands[0].peer == Operand::kLocal) return copy(operands[0].slice, slice);
  const bool all_local =
      std::all_of(operands.begin(), operands.end(), [](const Operand& o) { return o.peer == Operand::kLocal; });
  if (all_local && slice.bytes == 0) return kNoStep;

  const auto pass = [&](std::span<const Operand> some, Slice result, bool finished) {
    const Step step{.kind = StepKind::reduce, .finish = finished, .slice = result};
    return add(step, {}, some, after);
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
  return slice.bytes == 0 ? kNoStep : copy_places(places(source), places(slice));
}

Schedule Builder::take() { return assembler_->take(); }

}  // namespace tutti::internal
