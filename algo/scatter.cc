// scatter: output [count] = block `rank` of root's input [size*count].
// p ranks, m bytes a block. Runs where plans are made.
#include <algorithm>

#include "algo/collectives.h"
#include "algo/cost.h"
#include "algo/node_first/node_first.h"
#include "algo/peers.h"
#include "algo/runs.h"
#include "algo/shapes/knomial.h"

namespace tutti::internal {
namespace {

// Linear: each block goes straight to its rank, a bounded number at a time. (p-1) m bytes out of the root.
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  const Slice own = builder.output(0, problem.bytes());
  if (problem.rank != problem.root) {
    builder.recv(problem.root, own);
    return;
  }
  Window sends(kInFlightPerPort);
  for (const int peer : peers_after(problem.rank, problem.size))
    sends.add(builder.send(peer, builder.input(block(problem, peer).offset, problem.bytes()), sends.after()));
  builder.copy(builder.input(block(problem, problem.rank).offset, problem.bytes()), own);
}

double cost_linear(const Problem& problem, const CostParameters& cost) {
  // Each reads its own block, all at the same time, where the root's port lets them.
  if (problem.size == 1) return 0;
  return offer_us(cost, problem.size - 1) + spread_us(cost, problem.size - 1, static_cast<double>(problem.bytes()));
}

// K-nomial tree (shapes/knomial.h): a rank gets its subtree's blocks, which follow each other, as one message, or two
// where they pass the last rank, and passes each child its share. For many ranks and small blocks.
void build_knomial(Builder& builder) {
  const Problem& problem = builder.problem();
  const Tree tree = knomial_tree(problem.rank, problem.size, problem.root, problem.radix);
  const bool is_root = tree.parent < 0;
  const auto blocks_of = [&](int rank) {
    return knomial_subtree((rank - problem.root + problem.size) % problem.size, problem.size, problem.radix);
  };
  const Slice own = builder.output(0, problem.bytes());
  if (!is_root && tree.children.empty()) {
    builder.recv(tree.parent, own);
    return;
  }
  // The root's blocks lie by rank, an inner rank's from its own on.
  Slice held;
  if (!is_root) {
    held = builder.scratch(static_cast<uint64_t>(blocks_of(problem.rank)) * problem.bytes());
    uint64_t done = 0;
    for (const Range& run : block_runs(problem, problem.rank, blocks_of(problem.rank))) {
      builder.recv(tree.parent, {held.buffer, held.offset + done, run.bytes});
      done += run.bytes;
    }
  }
  // From the last child on: it has the largest subtree.
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
    const int ahead = (*child - problem.rank + problem.size) % problem.size;
    uint64_t done = static_cast<uint64_t>(ahead) * problem.bytes();
    for (const Range& run : block_runs(problem, *child, blocks_of(*child))) {
      builder.send(*child,
                   is_root ? builder.input(run.offset, run.bytes) : Slice{held.buffer, held.offset + done, run.bytes});
      done += run.bytes;
    }
  }
  builder.copy(is_root ? builder.input(block(problem, problem.rank).offset, problem.bytes())
                       : Slice{held.buffer, held.offset, problem.bytes()},
               own);
}

double cost_knomial(const Problem& problem, const CostParameters& cost) {
  // The longest way: into the largest subtree, and in it into its largest, and so on.
  double blocks = 0;
  for (int64_t weight = 1; weight < problem.size; weight *= problem.radix)
    blocks += static_cast<double>(std::min(weight, problem.size - weight));
  const int readers = std::min(problem.radix, problem.size) - 1;
  return rounds(problem.size, problem.radix) * offer_us(cost, readers) +
         spread_us(cost, readers, blocks * static_cast<double>(problem.bytes()));
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::scatter, "linear", build_linear, cost_linear},
    {Operation::scatter, "knomial", build_knomial, cost_knomial, tune_radix<cost_knomial>},
    {Operation::scatter, "node_first", node_first::build_scatter, nullptr, nullptr, node_first::fits,
     node_first::compose_scatter},
};

}  // namespace

std::span<const Algorithm> scatter_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
