// See ways.h. Runs where plans are made.
#include "algo/ways.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "algo/rewrite.h"

namespace tutti::internal {
namespace {

using Steps = std::vector<StepId>;

Steps add_sends(Assembler& assembler, const Step& step, std::span<const int32_t> peers, const Steps& after,
                std::span<const int> way_of) {
  std::map<int, std::vector<int32_t>> by_way;
  for (const int32_t peer : peers) by_way[way_of[static_cast<size_t>(peer)]].push_back(peer);
  Steps sends;
  for (const auto& [way, of_way] : by_way) sends.push_back(assembler.add(step, of_way, {}, after));
  return sends;
}

StepId add_reduce(Assembler& assembler, const Step& step, std::span<const Operand> operands, const Steps& after,
                  std::span<const int> way_of) {
  int lowest = std::numeric_limits<int>::max();
  for (const Operand& operand : operands)
    if (operand.peer != Operand::kLocal) lowest = std::min(lowest, way_of[static_cast<size_t>(operand.peer)]);
  std::vector<Operand> one_way(operands.begin(), operands.end());
  for (Operand& operand : one_way) {
    if (operand.peer == Operand::kLocal || way_of[static_cast<size_t>(operand.peer)] == lowest) continue;
    const Slice staged = assembler.scratch(step.slice.bytes);
    assembler.add({.kind = StepKind::recv, .slice = staged}, {&operand.peer, 1}, {}, after);
    operand = {.slice = staged};
  }
  return assembler.add(step, {}, one_way, after);
}

}  // namespace

Schedule split_ways(const Schedule& schedule, std::span<const int> way_of) {
  return rewrite(schedule, [&](Assembler& assembler, const Step& step, const Steps& after) -> Steps {
    const auto peers = schedule.peers_of(step);
    const auto operands = schedule.operands_of(step);
    if (step.kind == StepKind::send) return add_sends(assembler, step, peers, after, way_of);
    if (step.kind == StepKind::reduce) return {add_reduce(assembler, step, operands, after, way_of)};
    return {assembler.add(step, peers, operands, after)};
  });
}

}  // namespace tutti::internal
