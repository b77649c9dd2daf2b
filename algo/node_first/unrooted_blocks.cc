// Node-first all_gather and reduce_scatter: operations on one block of each rank.
// N nodes, c ranks on each, p = N c, L lanes, m bytes a block. Runs where plans are made.
#include <vector>

#include "algo/node_first/blocks.h"
#include "algo/node_first/node_first.h"

namespace tutti::internal::node_first {
namespace {

// One lane: the leader gathers its node's blocks, the leaders all_gather them across as one block of each node, and
// each gives everything to its node. The rounds of a gather of c, an all_gather of N and a broadcast to c ranks;
// across, (p-c) m into each leader.
//
//   node 0   a | b    inside    ab | b    across    abcd | b    inside    abcd | abcd
//   node 1   c | d      =>      cd | d      =>      abcd | d      =>      abcd | abcd
void gather_by_leaders(Builder& builder, Composer& composer, const Range& piece) {
  const Blocks all{builder, Buffer::output};
  const int leader = composer.owner(composer.here(), 0), ranks = builder.problem().size;
  const auto of_node = [&](int node) { return all.of(composer.layout().ranks_of(node), piece); };
  composer.run(Side::in, {.operation = Operation::gather,
                          .members = composer.inside(),
                          .bytes = piece.bytes,
                          .input = {builder.input(piece.offset, piece.bytes)},
                          .output = of_node(composer.here())});
  if (composer.layout().is_even()) {
    composer.run(Side::across, {.operation = Operation::all_gather,
                                .members = composer.owners(0),
                                .bytes = piece.bytes * static_cast<uint64_t>(composer.layout().most()),
                                .input = of_node(composer.here()),
                                .output = all.by_node(composer.layout(), piece)});
  } else {
    for (int node = 0; node < composer.node_count(); ++node)
      composer.run_linear(Side::across, {.operation = Operation::broadcast,
                                         .members = composer.owners(0),
                                         .root = node,
                                         .bytes = piece.bytes * static_cast<uint64_t>(composer.layout().ranks_on(node)),
                                         .input = of_node(node),
                                         .output = of_node(node)});
  }
  // Also what they know: in one message, and in the order of ranks it is one piece of memory.
  std::vector<Slice> by_rank;
  for (int rank = 0; rank < ranks; ++rank) by_rank.push_back(all.of(rank, piece));
  composer.run(Side::out, {.operation = Operation::broadcast,
                           .members = composer.inside(),
                           .root = composer.layout().local_rank(leader),
                           .bytes = piece.bytes * static_cast<uint64_t>(ranks),
                           .input = by_rank,
                           .output = by_rank});
}

// Several lanes: the node's ranks all_gather their blocks, each lane's owners exchange those that the lane carries, and
// give what comes to their nodes. Each block crosses once into each node: (p-c)/L m into each owner.
//
//   node 0   a | b    inside    ab | ab    across    abc  | ab d    inside    abcd | abcd
//   node 1   c | d      =>      cd | cd      =>      a cd | bcd       =>      abcd | abcd
void gather_by_lanes(Builder& builder, Composer& composer, const Range& piece) {
  const Blocks all{builder, Buffer::output};
  composer.run(Side::in, {.operation = Operation::all_gather,
                          .members = composer.inside(),
                          .bytes = piece.bytes,
                          .input = {builder.input(piece.offset, piece.bytes)},
                          .output = all.of(composer.inside(), piece)});
  for_each_carried(composer, [&](int lane, int index) {
    std::vector<Slice> slices;
    for (int node = 0; node < composer.node_count(); ++node) {
      const int rank = composer.carried(node, lane, index);
      if (rank < 0) continue;
      const Slice slice = all.of(rank, piece);
      slices.push_back(slice);
      if (!composer.all_carry(lane, index))
        composer.run_linear(Side::across, {.operation = Operation::broadcast,
                                           .members = composer.owners(lane),
                                           .root = node,
                                           .bytes = piece.bytes,
                                           .input = {slice},
                                           .output = {slice}});
    }
    if (!composer.all_carry(lane, index)) return;
    composer.run(Side::across, {.operation = Operation::all_gather,
                                .members = composer.owners(lane),
                                .bytes = piece.bytes,
                                .input = {slices[static_cast<size_t>(composer.here())]},
                                .output = slices});
  });
  for (int step = 1; step < composer.node_count(); ++step) {
    const int node = (composer.here() + step) % composer.node_count();
    for_each_carried(composer, [&](int lane, int index) {
      const int rank = composer.carried(node, lane, index);
      if (rank >= 0) composer.broadcast_inside(Side::out, composer.owner(composer.here(), lane), all.of(rank, piece));
    });
  }
}

// One lane: the node's ranks reduce all blocks to the leader, the leaders reduce_scatter them across as one block of
// each node, and each gives its ranks theirs. The rounds of a reduction of c, a reduce_scatter of N and a scatter to c
// ranks; across, (p-c) m into each leader.
void reduce_by_leaders(Builder& builder, Composer& composer, const Range& piece) {
  const Problem& problem = builder.problem();
  const int leader = composer.owner(composer.here(), 0);
  const bool leads = problem.rank == leader;
  const auto ranks = static_cast<uint64_t>(problem.size);
  const Slice own = builder.output(piece.offset, piece.bytes);

  const Blocks input{builder, Buffer::input};
  std::vector<Slice> sums;  // by rank
  for (int rank = 0; rank < problem.size; ++rank) sums.push_back(input.of(rank, piece));
  if (!composer.is_alone()) {
    const Slice sum = leads ? builder.scratch(ranks * piece.bytes) : Slice{};
    composer.run(Side::in, {.operation = Operation::reduce,
                            .members = composer.inside(),
                            .root = composer.layout().local_rank(leader),
                            .bytes = ranks * piece.bytes,
                            .input = sums,
                            .output = {sum},
                            .finish = Finish::no});
    sums = cut(sum, piece.bytes, ranks);
  }

  const auto of_node = [&](int node) {
    std::vector<Slice> slices;
    for (const int rank : composer.layout().ranks_of(node)) slices.push_back(sums[static_cast<size_t>(rank)]);
    return slices;
  };
  const uint64_t node_bytes = piece.bytes * composer.inside().size();
  Slice result = own;
  if (!composer.is_alone()) result = leads ? builder.scratch(node_bytes) : Slice{};
  if (composer.layout().is_even()) {
    std::vector<Slice> everything;
    for (int node = 0; node < composer.node_count(); ++node) {
      const auto slices = of_node(node);
      everything.insert(everything.end(), slices.begin(), slices.end());
    }
    composer.run(Side::across, {.operation = Operation::reduce_scatter,
                                .members = composer.owners(0),
                                .bytes = node_bytes,
                                .input = everything,
                                .output = {result}});
  } else {
    for (int node = 0; node < composer.node_count(); ++node)
      composer.run_linear(Side::across, {.operation = Operation::reduce,
                                         .members = composer.owners(0),
                                         .root = node,
                                         .bytes = piece.bytes * static_cast<uint64_t>(composer.layout().ranks_on(node)),
                                         .input = of_node(node),
                                         .output = {result}});
  }
  if (!composer.is_alone())
    composer.run(Side::out, {.operation = Operation::scatter,
                             .members = composer.inside(),
                             .root = composer.layout().local_rank(leader),
                             .bytes = piece.bytes,
                             .input = {result},
                             .output = {own}});
}

// Several lanes: the node's ranks reduce the blocks that a lane carries to its owner, the owners reduce across what
// each node is to have, and hand on what is not their own. Across, (p-c)/L m into each owner.
void reduce_by_lanes(Builder& builder, Composer& composer, const Range& piece) {
  const Problem& problem = builder.problem();
  const Blocks input{builder, Buffer::input};
  const auto on_each_node = [&](int lane, int index, auto visit) {
    for (int node = 0; node < composer.node_count(); ++node)
      if (const int rank = composer.carried(node, lane, index); rank >= 0) visit(node, rank);
  };
  std::vector<Slice> sums(static_cast<size_t>(problem.size));
  for_each_carried(composer, [&](int lane, int index) {
    on_each_node(lane, index, [&](int, int rank) {
      sums[static_cast<size_t>(rank)] = composer.reduce_inside(lane, input.of(rank, piece));
    });
  });
  for_each_carried(composer, [&](int lane, int index) {
    const int own = composer.carried(composer.here(), lane, index), owner = composer.owner(composer.here(), lane);
    Slice result;
    if (own == problem.rank)
      result = builder.output(piece.offset, piece.bytes);
    else if (own >= 0 && owner == problem.rank)
      result = builder.scratch(piece.bytes);
    std::vector<Slice> everything;
    on_each_node(lane, index, [&](int node, int rank) {
      everything.push_back(sums[static_cast<size_t>(rank)]);
      if (!composer.all_carry(lane, index))
        composer.run_linear(Side::across, {.operation = Operation::reduce,
                                           .members = composer.owners(lane),
                                           .root = node,
                                           .bytes = piece.bytes,
                                           .input = {sums[static_cast<size_t>(rank)]},
                                           .output = {result}});
    });
    if (composer.all_carry(lane, index))
      composer.run(Side::across, {.operation = Operation::reduce_scatter,
                                  .members = composer.owners(lane),
                                  .bytes = piece.bytes,
                                  .input = everything,
                                  .output = {result}});
    if (own >= 0 && own != owner) composer.move(Side::out, owner, own, {result}, {result});
  });
}

}  // namespace

void build_all_gather(Builder& builder) {
  Composer composer(builder);
  for (const Range& piece : segments({0, builder.problem().bytes()}, builder.problem().segment_bytes)) {
    composer.next_segment();
    composer.lanes() == 1 ? gather_by_leaders(builder, composer, piece) : gather_by_lanes(builder, composer, piece);
  }
}

void build_reduce_scatter(Builder& builder) {
  Composer composer(builder);
  for (const Range& piece : segments({0, builder.problem().bytes()}, builder.problem().segment_bytes)) {
    composer.next_segment();
    composer.lanes() == 1 ? reduce_by_leaders(builder, composer, piece) : reduce_by_lanes(builder, composer, piece);
  }
}

}  // namespace tutti::internal::node_first
