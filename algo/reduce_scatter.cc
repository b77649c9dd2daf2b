// reduce_scatter: output [count] = block `rank` of op over all ranks' input [size*count].
// p ranks, m bytes a block. Runs where plans are made.
#include <vector>

#include "algo/collectives.h"
#include "algo/cost.h"
#include "algo/node_first/node_first.h"
#include "algo/peers.h"
#include "algo/shapes/ring.h"

namespace tutti::internal {
namespace {

// Linear: rank r combines block r, reading all operands in one pass in rank order. (p-1) m bytes in and out, one round.
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  const auto peers = peers_after(problem.rank, problem.size);
  std::vector<Window> sends(static_cast<size_t>(problem.size), Window(kInFlightPerPeer));
  Window reduces(kInFlightPerPeer);
  for (const Range& piece : segments({0, problem.bytes()}, problem.segment_bytes)) {
    const auto in_block = [&](int rank) {
      return builder.input(block(problem, rank).offset + piece.offset, piece.bytes);
    };
    for (const int peer : peers) {
      Window& window = sends[static_cast<size_t>(peer)];
      window.add(builder.send(peer, in_block(peer), window.after()));
    }
    reduces.add(builder.reduce(all_in_rank_order(problem, in_block(problem.rank)),
                               builder.output(piece.offset, piece.bytes), Finish::yes, reduces.after()));
  }
}

double cost_linear(const Problem& problem, const CostParameters& cost) {
  if (problem.size == 1) return 0;
  const auto bytes = static_cast<double>(problem.bytes());
  const int peers = problem.size - 1;
  const double later_segments = segment_count(bytes, problem.segment_bytes) - 1;
  return offer_us(cost, peers) + (peers - 1) * cost.gap_us + later_segments * peers * segment_us(cost) +
         reduce_us(cost, peers, bytes);
}

void tune_linear(Problem& problem, const CostParameters& cost) {
  problem.segment_bytes = pipeline_segment(problem.bytes(), 1, problem.size * segment_us(cost), cost.beta_us_per_byte);
}

// Ring: the partial result of block b starts at rank b+1 and travels around to rank b; each rank adds its own.
// p-1 hops of m bytes. Partial results lie in scratch, two blocks by turns.
void build_ring(Builder& builder) {
  const Problem& problem = builder.problem();
  const Ring ring{problem.rank, problem.size};
  const auto pieces = segments({0, problem.bytes()}, problem.segment_bytes);
  if (problem.size == 1) {
    builder.copy(builder.input(0, problem.bytes()), builder.output(0, problem.bytes()));
    return;
  }
  Slice partial[2];
  for (int i = 0; i < 2 && i < problem.size - 2; ++i) partial[i] = builder.scratch(problem.bytes());
  Window arrivals(kInFlightPerPeer), sends(kInFlightPerPeer);
  for (int hop = 0; hop < problem.size; ++hop) {
    const bool last = hop == problem.size - 1;
    for (const Range& piece : pieces) {
      const Slice own = builder.input(block(problem, ring.from(hop + 1)).offset + piece.offset, piece.bytes);
      Slice held = own;
      if (hop > 0) {
        const uint64_t place = partial[(hop - 1) % 2].offset + piece.offset;
        held = last ? builder.output(piece.offset, piece.bytes) : Slice{Buffer::scratch, place, piece.bytes};
        const Operand operands[] = {{.peer = ring.left()}, {.slice = own}};
        arrivals.add(builder.reduce(operands, held, last ? Finish::yes : Finish::no, arrivals.after()));
      }
      if (!last) sends.add(builder.send(ring.right(), held, sends.after()));
    }
  }
}

double cost_ring(const Problem& problem, const CostParameters& cost) {
  const auto bytes = static_cast<double>(problem.bytes());
  const double later_segments = segment_count(bytes, problem.segment_bytes) - 1;
  return (problem.size - 1) * (cost.alpha_us + later_segments * segment_us(cost) + reduce_us(cost, 1, bytes));
}

void tune_ring(Problem& problem, const CostParameters& cost) {
  problem.segment_bytes = pipeline_segment(problem.bytes(), 1, segment_us(cost), cost.beta_us_per_byte,
                                           static_cast<uint64_t>(problem.size));
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::reduce_scatter, "linear", build_linear, cost_linear, tune_linear},
    {Operation::reduce_scatter, "ring", build_ring, cost_ring, tune_ring},
    {Operation::reduce_scatter, "node_first", node_first::build_reduce_scatter, nullptr, nullptr, node_first::fits,
     node_first::compose_reduce_scatter},
};

}  // namespace

std::span<const Algorithm> reduce_scatter_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
