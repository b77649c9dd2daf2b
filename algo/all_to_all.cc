// all_to_all: block r of output [size*count] = block `rank` of rank r's input [size*count].
// p ranks, m bytes a block. Runs where plans are made.
#include "algo/collectives.h"
#include "algo/cost.h"
#include "algo/node_first/node_first.h"
#include "algo/peers.h"
#include "algo/shapes/pairing.h"

namespace tutti::internal {
namespace {

// Linear: each block goes straight to its place; ranks meet in pairs (shapes/pairing.h) and swap blocks, a bounded
// number of pairs at a time. In place, the lower one of a pair saves its own block first: were both to overwrite the
// block that they offer, each would wait for the other.
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  Window sends(kInFlightPerPort), recvs(kInFlightPerPort);
  for (int round = 0; round < problem.size; ++round) {
    const int peer = partner(problem.rank, problem.size, round);
    const Range range = block(problem, peer);
    const Slice source = builder.input(range.offset, range.bytes), result = builder.output(range.offset, range.bytes);
    if (peer == problem.rank) {
      builder.copy(source, result);
      continue;
    }
    sends.add(builder.send(peer, problem.rank < peer ? builder.stable(source) : source, sends.after()));
    recvs.add(builder.recv(peer, result, recvs.after()));
  }
}

double cost_linear(const Problem& problem, const CostParameters& cost) {
  const int peers = problem.size - 1;
  if (peers == 0) return 0;
  return cost.alpha_us + 2 * (peers - 1) * cost.gap_us + peers * move_us(cost, static_cast<double>(problem.bytes()));
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::all_to_all, "linear", build_linear, cost_linear},
    {Operation::all_to_all, "node_first", node_first::build_all_to_all, nullptr, nullptr, node_first::fits,
     node_first::compose_all_to_all},
};

}  // namespace

std::span<const Algorithm> all_to_all_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
