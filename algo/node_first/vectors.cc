// Node-first all_reduce, reduce and broadcast: operations on one vector, of which each lane carries a part.
// N nodes, c ranks on each, L lanes, n bytes. Runs where plans are made.
#include <vector>

#include "algo/node_first/composer.h"
#include "algo/node_first/node_first.h"

namespace tutti::internal::node_first {

// The node's ranks reduce each lane's part to its owner, the owners all_reduce across, and give it to their nodes.
// Across, each lane moves what an all_reduce of n/L bytes on N ranks does: 2 (N-1)/N n/L for long ones.
//
//   node 0   a0 a1   b0 b1    inside    rank 0: ab0   rank 1: ab1    across   abcd0 | abcd1    inside   abcd0 abcd1
//   node 1   c0 c1   d0 d1      =>      rank 2: cd0   rank 3: cd1      =>     abcd0 | abcd1      =>     abcd0 abcd1
void build_all_reduce(Builder& builder) {
  Composer composer(builder);
  const auto pieces = lane_pieces(builder.problem());
  for (size_t i = 0; i < most_pieces(pieces); ++i) {
    composer.next_segment();
    std::vector<Slice> partial(pieces.size());
    const auto each_lane = [&](auto visit) {
      for (size_t lane = 0; lane < pieces.size(); ++lane)
        if (i < pieces[lane].size()) visit(static_cast<int>(lane), pieces[lane][i], partial[lane]);
    };
    each_lane([&](int lane, const Range& piece, Slice& sum) {
      sum = composer.reduce_inside(lane, builder.input(piece.offset, piece.bytes));
    });
    each_lane([&](int lane, const Range& piece, Slice& sum) {
      composer.run(Side::across, {.operation = Operation::all_reduce,
                                  .members = composer.owners(lane),
                                  .bytes = piece.bytes,
                                  .input = {sum},
                                  .output = {builder.output(piece.offset, piece.bytes)}});
    });
    each_lane([&](int lane, const Range& piece, Slice&) {
      const int from = composer.owner(composer.here(), lane);
      composer.broadcast_inside(Side::out, from, builder.output(piece.offset, piece.bytes));
    });
  }
}

// As above, but across it is a reduction to the root's node; the owners there hand their parts to the root.
// Across, n/L into each owner at the root.
void build_reduce(Builder& builder) {
  const Problem& problem = builder.problem();
  Composer composer(builder);
  const bool at_root = problem.rank == problem.root;
  const auto pieces = lane_pieces(problem);
  for (size_t i = 0; i < most_pieces(pieces); ++i) {
    composer.next_segment();
    std::vector<Slice> partial(pieces.size());
    for (size_t lane = 0; lane < pieces.size(); ++lane)
      if (i < pieces[lane].size())
        partial[lane] = composer.reduce_inside(static_cast<int>(lane),
                                               builder.input(pieces[lane][i].offset, pieces[lane][i].bytes));
    for (size_t lane = 0; lane < pieces.size(); ++lane) {
      if (i >= pieces[lane].size()) continue;
      const Range& piece = pieces[lane][i];
      const int collector = composer.owner(composer.root_node(), static_cast<int>(lane));
      Slice result;
      if (at_root) result = builder.output(piece.offset, piece.bytes);
      if (!at_root && problem.rank == collector) result = builder.scratch(piece.bytes);
      composer.run(Side::across, {.operation = Operation::reduce,
                                  .members = composer.owners(static_cast<int>(lane)),
                                  .root = composer.root_node(),
                                  .bytes = piece.bytes,
                                  .input = {partial[lane]},
                                  .output = {result}});
      if (collector != problem.root) composer.move(Side::out, collector, problem.root, {result}, {result});
    }
  }
}

// The root gives all parts to its node; each owner there passes its lane's part on across, and the other owners give
// it to their nodes. Across, n/L out of each owner at the root's node, and into each of the others.
//
//   node 0, root 0    ab |       inside    ab | ab    across    0 sends a to 2    inside
//   node 1               |         =>         |         =>      1 sends b to 3      =>      ab | ab
void build_broadcast(Builder& builder) {
  const Problem& problem = builder.problem();
  Composer composer(builder);
  const bool at_root_node = composer.here() == composer.root_node();
  const auto pieces = lane_pieces(problem);
  for (size_t i = 0; i < most_pieces(pieces); ++i) {
    composer.next_segment();
    for (int lane = 0; lane < composer.lanes(); ++lane) {
      const auto& mine = pieces[static_cast<size_t>(lane)];
      if (i >= mine.size()) continue;
      const Slice slice = builder.output(mine[i].offset, mine[i].bytes);
      const auto from_root = [&] {
        if (at_root_node) composer.broadcast_inside(Side::in, problem.root, slice);
      };
      // The root's own lane goes across at once.
      const bool is_roots = composer.owner(composer.root_node(), lane) == problem.root;
      if (!is_roots) from_root();
      composer.run(Side::across, {.operation = Operation::broadcast,
                                  .members = composer.owners(lane),
                                  .root = composer.root_node(),
                                  .bytes = slice.bytes,
                                  .input = {slice},
                                  .output = {slice}});
      if (is_roots) from_root();
      if (!at_root_node) composer.broadcast_inside(Side::out, composer.owner(composer.here(), lane), slice);
    }
  }
}

}  // namespace tutti::internal::node_first
