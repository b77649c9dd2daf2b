// barrier: no rank is done before every rank has begun. Messages are empty.
// p ranks. Runs where plans are made.
#include <algorithm>
#include <vector>

#include "algo/collectives.h"
#include "algo/cost.h"
#include "algo/node_first/node_first.h"
#include "algo/peers.h"
#include "algo/shapes/dissemination.h"

namespace tutti::internal {
namespace {

const Slice kNothing{};

// One-shot: everyone tells everyone. One round, p-1 messages into each.
void build_one_shot(Builder& builder) {
  const Problem& problem = builder.problem();
  const auto peers = peers_after(problem.rank, problem.size);
  builder.send(peers, kNothing);
  for (const int peer : peers) builder.recv(peer, kNothing);
}

double cost_one_shot(const Problem& problem, const CostParameters& cost) { return offer_us(cost, problem.size - 1); }

// Dissemination (shapes/dissemination.h): a round's messages say what the rounds before have brought.
// log p rounds to the radix, radix-1 messages each (Hensgen, Finkel and Manber 1988).
void build_dissemination(Builder& builder) {
  const Problem& problem = builder.problem();
  std::vector<StepId> heard;
  for (const auto& round : dissemination(problem.rank, problem.size, problem.radix)) {
    std::vector<int> readers;
    readers.reserve(round.size());
    for (const auto& exchange : round) readers.push_back(exchange.to);
    builder.send(readers, kNothing, heard);
    for (const auto& exchange : round) heard.push_back(builder.recv(exchange.from, kNothing));
  }
}

double cost_dissemination(const Problem& problem, const CostParameters& cost) {
  return rounds(problem.size, problem.radix) * offer_us(cost, std::min(problem.radix, problem.size) - 1);
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::barrier, "one_shot", build_one_shot, cost_one_shot},
    {Operation::barrier, "dissemination", build_dissemination, cost_dissemination, tune_radix<cost_dissemination>},
    {Operation::barrier, "node_first", node_first::build_barrier, nullptr, nullptr, node_first::fits,
     node_first::compose_barrier},
};

}  // namespace

std::span<const Algorithm> barrier_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
