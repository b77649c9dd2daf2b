// See assembler.h. Invariant: a step's predecessors are earlier steps, ascending, without duplicates.
#include "algo/assembler.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {
namespace {
constexpr uint64_t kLineBytes = 64;
}

Slice Assembler::scratch(uint64_t bytes) {
  const uint64_t offset = (scratch_used_ + kLineBytes - 1) / kLineBytes * kLineBytes;
  if (bytes > 0) scratch_used_ = offset + bytes;
  schedule_.scratch_bytes = std::max(schedule_.scratch_bytes, scratch_used_);
  return {Buffer::scratch, bytes > 0 ? offset : 0, bytes};
}

StepId Assembler::add(Step step, std::span<const int32_t> peers, std::span<const Operand> operands,
                      std::span<const StepId> after) {
  const auto id = static_cast<StepId>(schedule_.steps.size());
  step.first_peer = static_cast<uint32_t>(schedule_.peers.size());
  step.peer_count = static_cast<uint32_t>(peers.size());
  step.first_operand = static_cast<uint32_t>(schedule_.operands.size());
  step.operand_count = static_cast<uint32_t>(operands.size());
  step.successor_count = 0;
  schedule_.peers.insert(schedule_.peers.end(), peers.begin(), peers.end());
  schedule_.operands.insert(schedule_.operands.end(), operands.begin(), operands.end());

  std::vector<StepId> predecessors;
  for (const StepId earlier : after)
    if (earlier != kNoStep) predecessors.push_back(earlier);
  hazards_.access(schedule_, step, id, predecessors);
  drop_implied(predecessors);
  step.dependency_count = static_cast<uint32_t>(predecessors.size());
  predecessors_.insert(predecessors_.end(), predecessors.begin(), predecessors.end());
  first_predecessor_.push_back(predecessors_.size());
  schedule_.steps.push_back(step);
  return id;
}

std::span<const StepId> Assembler::predecessors_of(StepId step) const {
  const auto index = static_cast<size_t>(step);
  return std::span(predecessors_)
      .subspan(first_predecessor_[index], first_predecessor_[index + 1] - first_predecessor_[index]);
}

// Sorts, and drops what another predecessor waits for itself: each release costs the executor time.
void Assembler::drop_implied(std::vector<StepId>& predecessors) const {
  std::sort(predecessors.begin(), predecessors.end());
  predecessors.erase(std::unique(predecessors.begin(), predecessors.end()), predecessors.end());
  std::vector<StepId> implied;
  for (const StepId step : predecessors) {
    const auto before = predecessors_of(step);
    implied.insert(implied.end(), before.begin(), before.end());
  }
  std::sort(implied.begin(), implied.end());
  std::erase_if(predecessors, [&](StepId step) { return std::binary_search(implied.begin(), implied.end(), step); });
}

Schedule Assembler::take() {
  std::vector<Step>& steps = schedule_.steps;
  for (const StepId predecessor : predecessors_) ++steps[static_cast<size_t>(predecessor)].successor_count;
  uint32_t first = 0;
  for (Step& step : steps) {
    step.first_successor = first;
    first += std::exchange(step.successor_count, 0);
  }
  schedule_.successors.resize(predecessors_.size());
  for (size_t id = 0; id < steps.size(); ++id)
    for (const StepId predecessor : predecessors_of(static_cast<StepId>(id))) {
      Step& step = steps[static_cast<size_t>(predecessor)];
      schedule_.successors[step.first_successor + step.successor_count++] = static_cast<uint32_t>(id);
    }
  Schedule done = std::move(schedule_);
  *this = Assembler();
  return done;
}

}  // namespace tutti::internal
