// Node-first scatter and gather: a block of each rank, all of which one rank has or gets.
// N nodes, c ranks on each, p = N c, L lanes, m bytes a block. Runs where plans are made.
#include <vector>

#include "algo/node_first/blocks.h"
#include "algo/node_first/node_first.h"

namespace tutti::internal::node_first {
namespace {

// Where a leader that is not the root holds its node's blocks: its own buffer where it is alone.
std::vector<Slice> held_by_leader(Builder& builder, const Composer& composer, Slice own) {
  if (composer.is_alone()) return {own};
  return {builder.scratch(own.bytes * composer.inside().size())};
}

// One lane: the root scatters across, as one block of each node, to the leaders, and each scatters in its node.
// The rounds of a scatter of N ranks and of one of c; across, (p-c) m out of the root, in N-1 messages or in a tree's.
//
//   node 0, root 0    a b c d    across      a b    inside    a | b
//   node 1                         =>        c d      =>      c | d
void scatter_by_leaders(Builder& builder, Composer& composer, const Range& piece) {
  const Problem& problem = builder.problem();
  const int leader = composer.owner(composer.here(), 0);
  const bool at_root = problem.rank == problem.root;
  const Blocks all{builder, Buffer::input};
  const Slice own = builder.output(piece.offset, piece.bytes);
  std::vector<Slice> of_node;
  if (at_root) of_node = all.of(composer.inside(), piece);
  if (!at_root && problem.rank == leader) of_node = held_by_leader(builder, composer, own);

  if (composer.layout().is_even()) {
    composer.run(Side::across, {.operation = Operation::scatter,
                                .members = composer.owners(0),
                                .root = composer.root_node(),
                                .bytes = piece.bytes * static_cast<uint64_t>(composer.layout().most()),
                                .input = at_root ? all.by_node(composer.layout(), piece) : std::vector<Slice>{},
                                .output = of_node});
  } else {
    for (int step = 1; step < composer.node_count(); ++step) {
      const int node = (composer.root_node() + step) % composer.node_count();
      composer.move(Side::across, problem.root, composer.owner(node, 0),
                    at_root ? all.of(composer.layout().ranks_of(node), piece) : std::vector<Slice>{}, of_node);
    }
  }
  composer.run(Side::out, {.operation = Operation::scatter,
                           .members = composer.inside(),
                           .root = composer.layout().local_rank(leader),
                           .bytes = piece.bytes,
                           .input = of_node,
                           .output = {own}});
}

// One lane, the way back: each leader gathers its node's blocks, and the root gathers across.
void gather_by_leaders(Builder& builder, Composer& composer, const Range& piece) {
  const Problem& problem = builder.problem();
  const int leader = composer.owner(composer.here(), 0);
  const bool at_root = problem.rank == problem.root;
  const Blocks all{builder, Buffer::output};
  const Slice own = builder.input(piece.offset, piece.bytes);
  std::vector<Slice> of_node;
  if (at_root) of_node = all.of(composer.inside(), piece);
  if (!at_root && problem.rank == leader) of_node = held_by_leader(builder, composer, own);

  composer.run(Side::in, {.operation = Operation::gather,
                          .members = composer.inside(),
                          .root = composer.layout().local_rank(leader),
                          .bytes = piece.bytes,
                          .input = {own},
                          .output = of_node});
  if (composer.layout().is_even()) {
    composer.run(Side::across, {.operation = Operation::gather,
                                .members = composer.owners(0),
                                .root = composer.root_node(),
                                .bytes = piece.bytes * static_cast<uint64_t>(composer.layout().most()),
                                .input = of_node,
                                .output = at_root ? all.by_node(composer.layout(), piece) : std::vector<Slice>{}});
    return;
  }
  for (int step = 1; step < composer.node_count(); ++step) {
    const int node = (composer.root_node() + step) % composer.node_count();
    composer.move(Side::across, composer.owner(node, 0), problem.root, of_node,
                  at_root ? all.of(composer.layout().ranks_of(node), piece) : std::vector<Slice>{});
  }
}

// The stations of a rank's block on its way from the root, or to it: the lane's owner at the root's node, and at its
// own. Blocks of the root's node go directly.
struct Way {
  int rank, near_root, near_rank;
  bool crosses;
};

// visit(way) for each rank: the farther nodes' first, and the lanes by turns.
template <class Visit>
void for_each_way(const Composer& composer, Visit visit) {
  const int at = composer.root_node();
  for (int step = 1; step <= composer.node_count(); ++step) {
    const int node = (at + step) % composer.node_count();
    for_each_carried(composer, [&](int lane, int index) {
      const int rank = composer.carried(node, lane, index);
      if (rank >= 0) visit(Way{rank, composer.owner(at, lane), composer.owner(node, lane), node != at});
    });
  }
}

// Several lanes: the root hands the blocks that a lane carries to its owner at the root's node, who sends them across
// to the lane's owner there, who passes them on where they are not its own. Three rounds; across, (p-c)/L m out of each
// owner.
//
//   node 0, root 0    a b c d    inside    b d to 1        across    0 sends c to 2
//   node 1                         =>                        =>      1 sends d to 3
void scatter_by_lanes(Builder& builder, Composer& composer, const Range& piece) {
  const Problem& problem = builder.problem();
  const Blocks all{builder, Buffer::input};
  const auto own = std::vector{builder.output(piece.offset, piece.bytes)};
  for_each_way(composer, [&](const Way& way) {
    const auto source = problem.rank == problem.root ? std::vector{all.of(way.rank, piece)} : std::vector<Slice>{};
    if (!way.crosses) return composer.move(Side::in, problem.root, way.rank, source, own);
    std::vector<Slice> held = source;
    if (way.near_root != problem.root) {
      if (problem.rank == way.near_root) held = {builder.scratch(piece.bytes)};
      composer.move(Side::in, problem.root, way.near_root, source, held);
    }
    auto arrived = own;
    if (way.near_rank != way.rank && problem.rank == way.near_rank) arrived = {builder.scratch(piece.bytes)};
    composer.move(Side::across, way.near_root, way.near_rank, held, arrived);
    if (way.near_rank != way.rank) composer.move(Side::out, way.near_rank, way.rank, arrived, own);
  });
}

// The way back: each block through its lane's owners on its own node and on the root's. (p-c)/L m into each of those.
void gather_by_lanes(Builder& builder, Composer& composer, const Range& piece) {
  const Problem& problem = builder.problem();
  const Blocks all{builder, Buffer::output};
  const auto own = std::vector{builder.input(piece.offset, piece.bytes)};
  for_each_way(composer, [&](const Way& way) {
    const auto target = problem.rank == problem.root ? std::vector{all.of(way.rank, piece)} : std::vector<Slice>{};
    if (!way.crosses) return composer.move(Side::out, way.rank, problem.root, own, target);
    auto held = own;
    if (way.near_rank != way.rank) {
      if (problem.rank == way.near_rank) held = {builder.scratch(piece.bytes)};
      composer.move(Side::in, way.rank, way.near_rank, own, held);
    }
    std::vector<Slice> arrived = target;
    if (way.near_root != problem.root && problem.rank == way.near_root) arrived = {builder.scratch(piece.bytes)};
    composer.move(Side::across, way.near_rank, way.near_root, held, arrived);
    if (way.near_root != problem.root) composer.move(Side::out, way.near_root, problem.root, arrived, target);
  });
}

}  // namespace

void build_scatter(Builder& builder) {
  Composer composer(builder);
  for (const Range& piece : segments({0, builder.problem().bytes()}, builder.problem().segment_bytes)) {
    composer.next_segment();
    composer.lanes() == 1 ? scatter_by_leaders(builder, composer, piece) : scatter_by_lanes(builder, composer, piece);
  }
}

void build_gather(Builder& builder) {
  Composer composer(builder);
  for (const Range& piece : segments({0, builder.problem().bytes()}, builder.problem().segment_bytes)) {
    composer.next_segment();
    composer.lanes() == 1 ? gather_by_leaders(builder, composer, piece) : gather_by_lanes(builder, composer, piece);
  }
}

}  // namespace tutti::internal::node_first
