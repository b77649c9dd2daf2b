// Node-first all_to_all. N nodes, c ranks on each, p = N c, m bytes a block. Runs where plans are made.
#include <vector>

#include "algo/node_first/blocks.h"
#include "algo/node_first/node_first.h"
#include "algo/peers.h"
#include "algo/shapes/pairing.h"

namespace tutti::internal::node_first {
namespace {

// Who carries a node's blocks for one rank elsewhere: the rank of the same number on its node, modulo c, so that each
// has one partner on each node. Smaller nodes have no such number for all: they begin where another one ends.
int carrier(const Layout& layout, int node, int destination) {
  const int there = layout.node_of(destination), count = layout.ranks_on(node);
  const int first = layout.ranks_on(there) < count ? there * layout.ranks_on(there) : 0;
  return layout.ranks_of(node)[static_cast<size_t>((first + layout.local_rank(destination)) % count)];
}

// The blocks of this node's ranks for one rank elsewhere, at their carrier, by source. Empty on other ranks.
Slice bundle(Builder& builder, Composer& composer, int destination, int at) {
  const Problem& problem = builder.problem();
  const Blocks input{builder, Buffer::input};
  const Slice source = input.of(destination, {0, problem.bytes()});
  const Slice whole = problem.rank == at ? builder.scratch(problem.bytes() * composer.inside().size()) : Slice{};
  const auto places = cut(whole, problem.bytes(), composer.inside().size());
  for (size_t i = 0; i < places.size(); ++i) composer.move(Side::in, composer.inside()[i], at, {source}, {places[i]});
  return whole;
}

}  // namespace

// Nodes meet in pairs (shapes/pairing.h) and swap what their ranks have for each other; all ranks are lanes. A rank
// sends to N-1 ranks across, c blocks at once, and to c-1 inside, where the flat algorithm has p-1 messages across;
// across each block moves once, inside once.
//
//   node 0: 0 1    node 1: 2 3        inside: rank 0 gets 1's block for 2      across: rank 0 sends 2: 0's and 1's
//                                             rank 1 gets 0's block for 3              rank 1 sends 3: 0's and 1's
void build_all_to_all(Builder& builder) {
  const Problem& problem = builder.problem();
  Composer composer(builder, kInFlightPerPort);
  const Layout& layout = composer.layout();
  const Blocks input{builder, Buffer::input}, output{builder, Buffer::output};
  const Range whole{0, problem.bytes()};
  const auto& inside = composer.inside();
  for (int round = 0; round < layout.node_count(); ++round) {
    composer.next_segment();
    const int node = partner(composer.here(), layout.node_count(), round);
    if (node == composer.here()) {
      composer.run(Side::in, {.operation = Operation::all_to_all,
                              .members = inside,
                              .bytes = problem.bytes(),
                              .input = input.of(inside, whole),
                              .output = output.of(inside, whole)});
      continue;
    }
    for (const int destination : layout.ranks_of(node)) {
      const int from = carrier(layout, composer.here(), destination);
      composer.move(Side::across, from, destination, {bundle(builder, composer, destination, from)}, {});
    }
    composer.move(Side::across, carrier(layout, node, problem.rank), problem.rank, {},
                  output.of(layout.ranks_of(node), whole));
  }
}

}  // namespace tutti::internal::node_first
