// send and recv between two ranks: one step each. problem.root is the other rank.
// Runs where plans are made.
#include "algo/collectives.h"
#include "algo/cost.h"

namespace tutti::internal {
namespace {

void build_send(Builder& builder) { builder.send(builder.problem().root, builder.input(0, builder.problem().bytes())); }

void build_recv(Builder& builder) {
  builder.recv(builder.problem().root, builder.output(0, builder.problem().bytes()));
}

double cost_direct(const Problem& problem, const CostParameters& cost) {
  return offer_us(cost, 1) + move_us(cost, static_cast<double>(problem.bytes()));
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::send, "direct", build_send, cost_direct},
    {Operation::recv, "direct", build_recv, cost_direct},
};

}  // namespace

std::span<const Algorithm> send_recv_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
