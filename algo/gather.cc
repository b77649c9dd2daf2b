// gather: output [size*count] on root = the ranks' input [count], one after the other.
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

// Linear: each block goes straight to its place, a bounded number at a time into the root. (p-1) m bytes into the root.
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  const Slice own = builder.input(0, problem.bytes());
  if (problem.rank != problem.root) {
    builder.send(problem.root, own);
    return;
  }
  Window arrivals(kInFlightPerPort);
  for (const int peer : peers_after(problem.rank, problem.size))
    arrivals.add(builder.recv(peer, builder.output(block(problem, peer).offset, problem.bytes()), arrivals.after()));
  builder.copy(own, builder.output(block(problem, problem.rank).offset, problem.bytes()));
}

double cost_linear(const Problem& problem, const CostParameters& cost) {
  return offer_us(cost, problem.size - 1) + (problem.size - 1) * move_us(cost, static_cast<double>(problem.bytes()));
}

// K-nomial tree (shapes/knomial.h): a rank collects its subtree's blocks, which follow each other, and passes them on
// as one message, or two where they pass the last rank: the root takes them straight into place. Moves blocks several
// times; for many ranks and small blocks.
void build_knomial(Builder& builder) {
  const Problem& problem = builder.problem();
  const Tree tree = knomial_tree(problem.rank, problem.size, problem.root, problem.radix);
  const bool is_root = tree.parent < 0;
  const auto blocks_of = [&](int rank) {
    return knomial_subtree((rank - problem.root + problem.size) % problem.size, problem.size, problem.radix);
  };
  const Slice own = builder.input(0, problem.bytes());
  const uint64_t subtree_bytes = static_cast<uint64_t>(blocks_of(problem.rank)) * problem.bytes();
  const Slice collected = is_root || tree.children.empty() ? own : builder.scratch(subtree_bytes);

  if (is_root) builder.copy(own, builder.output(block(problem, problem.rank).offset, problem.bytes()));
  if (!is_root && !tree.children.empty()) builder.copy(own, {collected.buffer, collected.offset, problem.bytes()});
  uint64_t done = problem.bytes();
  for (const int child : tree.children)
    for (const Range& run : block_runs(problem, child, blocks_of(child))) {
      builder.recv(child, is_root ? builder.output(run.offset, run.bytes)
                                  : Slice{collected.buffer, collected.offset + done, run.bytes});
      done += run.bytes;
    }
  if (is_root) return;
  done = 0;
  for (const Range& run : block_runs(problem, problem.rank, blocks_of(problem.rank))) {
    builder.send(tree.parent, {collected.buffer, collected.offset + done, run.bytes});
    done += run.bytes;
  }
}

double cost_knomial(const Problem& problem, const CostParameters& cost) {
  // A block's farthest way is `rounds` hops; the last hop brings the largest subtree, 1/radix of all, with its like.
  const auto bytes = static_cast<double>(problem.bytes());
  const double shared = 1.0 + 1.0 / problem.radix;
  return rounds(problem.size, problem.radix) * offer_us(cost, std::min(problem.radix, problem.size) - 1) +
         (problem.size - 1) * move_us(cost, bytes) * (problem.size > 2 ? shared : 1);
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::gather, "linear", build_linear, cost_linear},
    {Operation::gather, "knomial", build_knomial, cost_knomial, tune_radix<cost_knomial>},
    {Operation::gather, "node_first", node_first::build_gather, nullptr, nullptr, node_first::fits,
     node_first::compose_gather},
};

}  // namespace

std::span<const Algorithm> gather_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
