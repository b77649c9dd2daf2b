// broadcast: everyone's output [count] = root's. There is one buffer; the builder calls it output (algo/problem.h).
// p ranks, n bytes. Runs where plans are made.
#include "algo/collectives.h"
#include "algo/cost.h"
#include "algo/node_first/node_first.h"
#include "algo/peers.h"
#include "algo/shapes/chain.h"
#include "algo/shapes/knomial.h"
#include "algo/tree_steps.h"

namespace tutti::internal {
namespace {

// Linear: the root offers the whole message to all at once, and all read it where it lies. One round.
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  const Slice all = builder.output(0, problem.bytes());
  if (problem.rank == problem.root) {
    builder.send(peers_after(problem.rank, problem.size), all);
  } else {
    builder.recv(problem.root, all);
  }
}

double cost_linear(const Problem& problem, const CostParameters& cost) {
  if (problem.size == 1) return 0;
  return offer_us(cost, problem.size - 1) + spread_us(cost, problem.size - 1, static_cast<double>(problem.bytes()));
}

// K-nomial tree (shapes/knomial.h), in segments: q rounds, each of one message to radix-1 children.
void build_knomial(Builder& builder) {
  const Problem& problem = builder.problem();
  tree_broadcast(builder, knomial_tree(problem.rank, problem.size, problem.root, problem.radix),
                 builder.input(0, problem.bytes()));
}

double cost_knomial(const Problem& problem, const CostParameters& cost) {
  const int children = knomial_root_children(problem.size, problem.radix);
  return pipeline_us(
      cost, problem, [&](double bytes) { return knomial_broadcast_us(problem, cost, bytes); },
      [&](double bytes) { return children * cost.gap_us + spread_us(cost, children, bytes); });
}

// Chain (shapes/chain.h), in segments: (p-2+k) times one segment's way for k segments. Each link carries n bytes once.
void build_chain(Builder& builder) {
  const Problem& problem = builder.problem();
  tree_broadcast(builder, chain_tree(problem.rank, problem.size, problem.root), builder.input(0, problem.bytes()));
}

double cost_chain(const Problem& problem, const CostParameters& cost) {
  return pipeline_us(
      cost, problem, [&](double bytes) { return (problem.size - 1) * (offer_us(cost, 1) + move_us(cost, bytes)); },
      [&](double bytes) { return move_us(cost, bytes); });
}

void tune_chain(Problem& problem, const CostParameters& cost) {
  problem.segment_bytes = pipeline_segment(problem.bytes(), problem.size - 2, segment_us(cost), cost.beta_us_per_byte);
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::broadcast, "linear", build_linear, cost_linear},
    {Operation::broadcast, "knomial", build_knomial, cost_knomial, tune_knomial<cost_knomial, 1>},
    {Operation::broadcast, "chain", build_chain, cost_chain, tune_chain},
    {Operation::broadcast, "node_first", node_first::build_broadcast, nullptr, nullptr, node_first::fits,
     node_first::compose_broadcast},
};

}  // namespace

std::span<const Algorithm> broadcast_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
