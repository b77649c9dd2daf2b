// all_gather: output [size*count] = the ranks' input [count], one after the other.
// p ranks, m bytes a block. Runs where plans are made.
#include <algorithm>
#include <vector>

#include "algo/collectives.h"
#include "algo/cost.h"
#include "algo/node_first/node_first.h"
#include "algo/peers.h"
#include "algo/runs.h"
#include "algo/shapes/dissemination.h"
#include "algo/shapes/ring.h"

namespace tutti::internal {
namespace {

Slice own_block(Builder& builder) { return builder.input(0, builder.problem().bytes()); }

Slice output_block(Builder& builder, int rank) {
  const Range range = block(builder.problem(), rank);
  return builder.output(range.offset, range.bytes);
}

// Linear: everyone offers its block to all at once. One round, (p-1) m bytes into each.
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  const auto peers = peers_after(problem.rank, problem.size);
  builder.send(peers, own_block(builder));
  Window arrivals(kInFlightPerPort);
  for (const int peer : peers) arrivals.add(builder.recv(peer, output_block(builder, peer), arrivals.after()));
  builder.copy(own_block(builder), output_block(builder, problem.rank));
}

double cost_linear(const Problem& problem, const CostParameters& cost) {
  const int peers = problem.size - 1;
  return offer_us(cost, peers) + peers * move_us(cost, static_cast<double>(problem.bytes()));
}

// Ring: each block travels around. p-1 hops of m bytes, in segments: a segment is passed on as soon as it is there.
void build_ring(Builder& builder) {
  const Problem& problem = builder.problem();
  const Ring ring{problem.rank, problem.size};
  builder.copy(own_block(builder), output_block(builder, problem.rank));
  Window arrivals(kInFlightPerPeer), sends(kInFlightPerPeer);
  for (int hop = 0; hop < problem.size; ++hop)
    for (const Range& piece : segments({0, problem.bytes()}, problem.segment_bytes)) {
      Slice slice = builder.input(piece.offset, piece.bytes);
      if (hop > 0) {
        slice = builder.output(block(problem, ring.from(hop)).offset + piece.offset, piece.bytes);
        arrivals.add(builder.recv(ring.left(), slice, arrivals.after()));
      }
      if (hop < problem.size - 1) sends.add(builder.send(ring.right(), slice, sends.after()));
    }
}

double cost_ring(const Problem& problem, const CostParameters& cost) {
  const auto bytes = static_cast<double>(problem.bytes());
  const double later_segments = segment_count(bytes, problem.segment_bytes) - 1;
  return (problem.size - 1) * (cost.alpha_us + later_segments * segment_us(cost) + move_us(cost, bytes));
}

void tune_ring(Problem& problem, const CostParameters& cost) {
  problem.segment_bytes = pipeline_segment(problem.bytes(), 1, segment_us(cost), cost.beta_us_per_byte,
                                           static_cast<uint64_t>(problem.size));
}

// Dissemination (shapes/dissemination.h): what a rank holds is a run of blocks from its own on, in their final place,
// so that nothing is turned or packed; a run that passes the last block is two messages. Rounds: log p to the radix
// (Bruck et al. 1997, without their rotation).
void build_dissemination(Builder& builder) {
  const Problem& problem = builder.problem();
  builder.copy(own_block(builder), output_block(builder, problem.rank));
  for (const auto& round : dissemination(problem.rank, problem.size, problem.radix)) {
    for (size_t i = 0; i < round.size();) {
      // Those who need the same run are offered it in one step.
      std::vector<int> readers;
      const int count = round[i].count;
      for (; i < round.size() && round[i].count == count; ++i) readers.push_back(round[i].to);
      for (const Range& run : block_runs(problem, problem.rank, count))
        builder.send(readers, builder.output(run.offset, run.bytes));
    }
    for (const auto& exchange : round)
      for (const Range& run : block_runs(problem, exchange.from, exchange.count))
        builder.recv(exchange.from, builder.output(run.offset, run.bytes));
  }
}

double cost_dissemination(const Problem& problem, const CostParameters& cost) {
  // A run that wraps is one message more for most ranks in the later rounds.
  return rounds(problem.size, problem.radix) *
             (offer_us(cost, std::min(problem.radix, problem.size) - 1) + cost.gap_us) +
         (problem.size - 1) * move_us(cost, static_cast<double>(problem.bytes()));
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::all_gather, "linear", build_linear, cost_linear},
    {Operation::all_gather, "ring", build_ring, cost_ring, tune_ring},
    {Operation::all_gather, "dissemination", build_dissemination, cost_dissemination, tune_radix<cost_dissemination>},
    {Operation::all_gather, "node_first", node_first::build_all_gather, nullptr, nullptr, node_first::fits,
     node_first::compose_all_gather},
};

}  // namespace

std::span<const Algorithm> all_gather_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
