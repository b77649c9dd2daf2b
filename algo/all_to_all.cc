// all_to_all: block r of output [size*count] = block `rank` of rank r's input [size*count].
// p ranks, m bytes a block. Runs where plans are made.
#include "algo/collectives.h"
#include "algo/cost.h"
#include "algo/peers.h"

namespace tutti::internal {
namespace {

// Linear: each block goes straight to its place; the k-th message is to the k-th rank after, from the k-th before, a
// bounded number at a time. In place, of two ranks that swap blocks the lower one saves its own first: were the blocks
// of both overwritten in place, each would wait for the other.
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  Window sends(kInFlightPerPort), recvs(kInFlightPerPort);
  const auto input_block = [&](int rank) { return builder.input(block(problem, rank).offset, problem.bytes()); };
  const auto output_block = [&](int rank) { return builder.output(block(problem, rank).offset, problem.bytes()); };
  for (int distance = 1; distance < problem.size; ++distance) {
    const int to = (problem.rank + distance) % problem.size;
    const Slice source = problem.rank < to ? builder.stable(input_block(to)) : input_block(to);
    sends.add(builder.send(to, source, sends.after()));
  }
  for (int distance = 1; distance < problem.size; ++distance) {
    const int from = (problem.rank + problem.size - distance) % problem.size;
    recvs.add(builder.recv(from, output_block(from), recvs.after()));
  }
  builder.copy(input_block(problem.rank), output_block(problem.rank));
}

double cost_linear(const Problem& problem, const CostParameters& cost) {
  const int peers = problem.size - 1;
  if (peers == 0) return 0;
  return cost.alpha_us + 2 * (peers - 1) * cost.gap_us + peers * move_us(cost, static_cast<double>(problem.bytes()));
}

constexpr Algorithm kAlgorithms[] = {{Operation::all_to_all, "linear", build_linear, cost_linear}};

}  // namespace

std::span<const Algorithm> all_to_all_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
