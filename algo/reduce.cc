// reduce: output [count] on root = op over all ranks' input [count].
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

// Linear: everyone offers its input to the root, which combines all in rank order in one pass; in segments, so that
// the root begins before the last byte of the others is there. (p-1) n bytes into the root.
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  Window in_flight(kInFlightPerPeer);
  for (const Range& piece : segments({0, problem.bytes()}, problem.segment_bytes)) {
    const Slice own = builder.input(piece.offset, piece.bytes);
    in_flight.add(problem.rank == problem.root
                      ? builder.reduce(all_in_rank_order(problem, own), builder.output(piece.offset, piece.bytes),
                                       Finish::yes, in_flight.after())
                      : builder.send(problem.root, own, in_flight.after()));
  }
}

double cost_linear(const Problem& problem, const CostParameters& cost) {
  const auto bytes = static_cast<double>(problem.bytes());
  const double later_segments = segment_count(bytes, problem.segment_bytes) - 1;
  return offer_us(cost, problem.size - 1) + later_segments * segment_us(cost) +
         reduce_us(cost, problem.size - 1, bytes);
}

void tune_linear(Problem& problem, const CostParameters& cost) {
  problem.segment_bytes = pipeline_segment(problem.bytes(), 1, segment_us(cost), cost.beta_us_per_byte);
}

// K-nomial tree (shapes/knomial.h), in segments. A rank combines its own input and all its children's partial results,
// which stand in rank order counted from the root, in one pass.
void build_knomial(Builder& builder) {
  const Problem& problem = builder.problem();
  tree_reduce(builder, knomial_tree(problem.rank, problem.size, problem.root, problem.radix));
}

double cost_knomial(const Problem& problem, const CostParameters& cost) {
  const int children = knomial_root_children(problem.size, problem.radix);
  return pipeline_us(
      cost, problem, [&](double bytes) { return knomial_reduce_us(problem, cost, bytes); },
      [&](double bytes) { return children * cost.gap_us + reduce_us(cost, children, bytes); });
}

// Chain (shapes/chain.h) towards the root, in segments: each link carries n bytes once, each rank combines n bytes
// once.
void build_chain(Builder& builder) {
  const Problem& problem = builder.problem();
  tree_reduce(builder, chain_tree(problem.rank, problem.size, problem.root));
}

double cost_chain(const Problem& problem, const CostParameters& cost) {
  return pipeline_us(
      cost, problem, [&](double bytes) { return (problem.size - 1) * (offer_us(cost, 1) + reduce_us(cost, 1, bytes)); },
      [&](double bytes) { return reduce_us(cost, 1, bytes); });
}

void tune_chain(Problem& problem, const CostParameters& cost) {
  problem.segment_bytes = pipeline_segment(problem.bytes(), problem.size - 2, segment_us(cost), cost.beta_us_per_byte);
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::reduce, "linear", build_linear, cost_linear, tune_linear},
    {Operation::reduce, "knomial", build_knomial, cost_knomial, tune_knomial<cost_knomial, 1>},
    {Operation::reduce, "chain", build_chain, cost_chain, tune_chain},
    {Operation::reduce, "node_first", node_first::build_reduce, nullptr, nullptr, node_first::fits,
     node_first::compose_reduce},
};

}  // namespace

std::span<const Algorithm> reduce_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
