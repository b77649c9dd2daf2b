// Node-first barrier. N nodes, c ranks on each. Runs where plans are made.
#include <vector>

#include "algo/layout.h"
#include "algo/node_first/node_first.h"

namespace tutti::internal::node_first {

// The ranks of a node tell their leader, the leaders meet across by any barrier, and each tells its node.
// c-1 messages into each leader, those of a barrier of N ranks, c-1 messages out. What is empty shows no order of
// itself: each step says what it waits for.
void build_barrier(Builder& builder) {
  const Problem& problem = builder.problem();
  const Layout& layout = *problem.layout;
  const auto& inside = layout.ranks_of(layout.node_of(problem.rank));
  const int leader = inside.front();
  if (problem.rank != leader) {
    builder.send(leader, Slice{});
    builder.recv(leader, Slice{});
    return;
  }
  const std::vector<int> others(inside.begin() + 1, inside.end());
  Scope across;
  for (int node = 0; node < layout.node_count(); ++node) across.members.push_back(layout.ranks_of(node).front());
  for (const int other : others) across.after.push_back(builder.recv(other, Slice{}));
  across.problem.operation = Operation::barrier;
  across.problem.rank = layout.node_of(problem.rank);
  across.problem.size = layout.node_count();
  across.problem.radix = problem.composition.across.radix;
  const StepId last = builder.within(across, problem.composition.across.algorithm->build);
  std::vector<StepId> met;
  for (auto step = static_cast<StepId>(others.size()); step <= last; ++step) met.push_back(step);
  builder.send(others, Slice{}, met);
}

}  // namespace tutti::internal::node_first
