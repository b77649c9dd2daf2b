// See simulation.h. One thread; the order in which ready steps start changes nothing, because no two unordered steps of
// a rank touch the same bytes (rank_check.h, proved first).
#include "algo/proof/simulation.h"

#include "algo/proof/fault.h"

namespace tutti::internal::proof {
namespace {

void merge(std::vector<uint64_t>& into, const std::vector<uint64_t>& from) {
  for (size_t i = 0; i < into.size(); ++i) into[i] |= from[i];
}

}  // namespace

Simulation::Simulation(std::span<const Problem> problems, std::span<const Schedule> schedules, const Matching& matching,
                       Expressions& expressions)
    : problems_(problems),
      schedules_(schedules),
      matching_(matching),
      expressions_(expressions),
      barrier_(problems[0].operation == Operation::barrier) {
  const size_t size = problems.size(), words = (size + 63) / 64;
  for (size_t rank = 0; rank < size; ++rank) {
    memories_.emplace_back(problems[rank], expressions);
    Known self(barrier_ ? words : 0);
    if (barrier_) self[rank / 64] = uint64_t{1} << (rank % 64);
    auto& states = states_.emplace_back(schedules[rank].steps.size());
    for (uint32_t id = 0; id < states.size(); ++id) {
      const GlobalStep at{static_cast<int>(rank), id};
      states[id].waits = step(at).dependency_count;
      states[id].absent = static_cast<uint32_t>(taken(at).size() + takers(at).size()) + 1;
      states[id].known = self;
      if (states[id].waits == 0) ready_.push_back(at);
    }
    known_at_end_.push_back(std::move(self));
  }
}

Status Simulation::run() {
  while (!ready_.empty()) {
    const GlobalStep at = ready_.front();
    ready_.pop_front();
    TUTTI_RETURN_IF_ERROR(start(at));
  }
  return check_all_completed();
}

Status Simulation::start(GlobalStep at) {
  if (step(at).kind == StepKind::send) {
    state(at).sent = memory(at.rank).read(step(at).slice);
    for (const Fragment& fragment : state(at).sent)
      if (fragment.value.node == kUndefined)
        return fault(at.rank, schedule(at), at.step, "sends bytes that were never written");
  }
  // The takers know what a send knew when it started, so tell them before any of them completes.
  for (const GlobalStep taker : takers(at))
    if (barrier_) merge(state(taker).known, state(at).known);
  for (const GlobalStep taker : takers(at)) TUTTI_RETURN_IF_ERROR(arrive(taker));
  return arrive(at);
}

// One of those that `at` needs to complete is there.
Status Simulation::arrive(GlobalStep at) { return --state(at).absent == 0 ? complete(at) : Status(); }

Status Simulation::complete(GlobalStep at) {
  TUTTI_RETURN_IF_ERROR(take(at));
  for (const GlobalStep sender : taken(at)) TUTTI_RETURN_IF_ERROR(arrive(sender));
  if (barrier_) merge(known_at_end_[static_cast<size_t>(at.rank)], state(at).known);
  for (const uint32_t successor : schedule(at).successors_of(step(at))) {
    const GlobalStep next{at.rank, successor};
    if (barrier_) merge(state(next).known, state(at).known);
    if (--state(next).waits == 0) ready_.push_back(next);
  }
  return {};
}

// Does what the step does to memory.
Status Simulation::take(GlobalStep at) {
  Memory& memory = memories_[static_cast<size_t>(at.rank)];
  switch (step(at).kind) {
    case StepKind::send: return {};
    case StepKind::recv: memory.write(step(at).slice, state(taken(at)[0]).sent); return {};
    case StepKind::copy: {
      const auto fragments = memory.read(step(at).source);
      for (const Fragment& fragment : fragments)
        if (fragment.value.node == kUndefined)
          return fault(at.rank, schedule(at), at.step, "copies bytes that were never written");
      memory.write(step(at).slice, fragments);
      return {};
    }
    case StepKind::reduce: return reduce(at);
  }
  return {};
}

Status Simulation::reduce(GlobalStep at) {
  std::vector<std::vector<Fragment>> operands;
  size_t message = 0;
  for (const Operand& operand : schedule(at).operands_of(step(at)))
    operands.push_back(operand.peer == Operand::kLocal ? memory(at.rank).read(operand.slice)
                                                       : state(taken(at)[message++]).sent);

  const uint64_t element_bytes = problems_[static_cast<size_t>(at.rank)].element_bytes;
  std::vector<size_t> next(operands.size());  // the fragment of each operand that covers `begin`
  std::vector<NodeId> nodes(operands.size());
  std::vector<Fragment> result;
  for (uint64_t begin = 0; begin < step(at).slice.bytes;) {
    uint64_t end = step(at).slice.bytes;
    const uint64_t shift = operands[0][next[0]].value.shift;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Fragment& fragment = operands[i][next[i]];
      nodes[i] = fragment.value.node;
      end = std::min(end, fragment.end);
      if (nodes[0] != kUndefined && nodes[i] != kUndefined && fragment.value.shift != shift)
        return fault(at.rank, schedule(at), at.step,
                     fmt::format("byte {} combines position {} with position {}", begin, begin + shift,
                                 begin + fragment.value.shift));
    }
    if ((begin + shift) % element_bytes != 0)
      return fault(at.rank, schedule(at), at.step, fmt::format("byte {} is in the middle of an element", begin));
    const Result<NodeId> node = expressions_.combine(nodes, step(at).finish);
    if (!node.ok()) return fault(at.rank, schedule(at), at.step, node.status().message());
    result.push_back({begin, end, {node.value(), shift}});
    begin = end;
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i][next[i]].end == end) ++next[i];
  }
  memories_[static_cast<size_t>(at.rank)].write(step(at).slice, result);
  return {};
}

Status Simulation::check_all_completed() const {
  const GlobalStep* stuck = nullptr;
  GlobalStep at;
  for (int rank = 0; rank < static_cast<int>(schedules_.size()) && stuck == nullptr; ++rank)
    for (uint32_t id = 0; id < schedules_[static_cast<size_t>(rank)].steps.size() && stuck == nullptr; ++id)
      if (states_[static_cast<size_t>(rank)][id].absent > 0) {
        at = {rank, id};
        stuck = &at;
      }
  if (stuck == nullptr) return {};
  const State& state = states_[static_cast<size_t>(at.rank)][at.step];
  return fault(at.rank, schedule(at), at.step,
               state.waits > 0
                   ? fmt::format("deadlock: never starts, {} steps that it waits for do not complete", state.waits)
                   : fmt::format("deadlock: never completes, {} other ends do not start", state.absent));
}

bool Simulation::knows(int rank, int other) const {
  const auto bit = static_cast<size_t>(other);
  return (known_at_end_[static_cast<size_t>(rank)][bit / 64] >> (bit % 64) & 1) != 0;
}

}  // namespace tutti::internal::proof
