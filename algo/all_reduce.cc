// all_reduce: output [count] = op over all ranks' input [count].
// p ranks, n bytes; q = rounds. Runs where plans are made.
#include <algorithm>
#include <vector>

#include "algo/collectives.h"
#include "algo/cost.h"
#include "algo/node_first/node_first.h"
#include "algo/partition.h"
#include "algo/peers.h"
#include "algo/shapes/exchange.h"
#include "algo/shapes/knomial.h"
#include "algo/shapes/ring.h"
#include "algo/tree_steps.h"

namespace tutti::internal {
namespace {

// One-shot: everyone offers its input to everyone, and combines all in rank order. One round, (p-1) n bytes into each.
//
//   rank 0   offers a    takes   b c    has a b c
//   rank 1   offers b    takes a   c    has a b c
//   rank 2   offers c    takes a b      has a b c
void build_one_shot(Builder& builder) {
  const Problem& problem = builder.problem();
  const Slice own = builder.input(0, problem.bytes());
  builder.send(peers_after(problem.rank, problem.size), builder.stable(own));
  builder.reduce(all_in_rank_order(problem, own), builder.output(0, problem.bytes()), Finish::yes);
}

double cost_one_shot(const Problem& problem, const CostParameters& cost) {
  return offer_us(cost, problem.size - 1) + reduce_us(cost, problem.size - 1, static_cast<double>(problem.bytes()));
}

// K-ary exchange (shapes/exchange.h): q rounds of n bytes to radix-1 ranks (Thakur, Rabenseifner and Gropp 2005; the
// fold keeps rank order). Partial results change between two places, so that a round overwrites nothing that the round
// before still offers.
void build_recursive_doubling(Builder& builder) {
  const Problem& problem = builder.problem();
  const Exchange shape = exchange(problem.rank, problem.size, problem.radix);
  const Slice own = builder.input(0, problem.bytes()), result = builder.output(0, problem.bytes());
  if (problem.rank != shape.captain) {
    builder.send(shape.captain, own);
    builder.recv(shape.captain, result);
    return;
  }

  const size_t last = shape.groups.size();  // round 0 is the fold
  Slice partial[2];
  const auto result_of = [&](size_t round) {
    if (round == last) return result;
    Slice& place = partial[round % 2];
    if (place.bytes == 0) place = builder.scratch(problem.bytes());
    return place;
  };
  Slice held = own;
  if (!shape.team.empty()) {
    std::vector<Operand> operands{{.slice = own}};
    for (const int member : shape.team) operands.push_back({.peer = member});
    held = result_of(0);
    builder.reduce(operands, held, last == 0 ? Finish::yes : Finish::no);
  } else if (last == 1) {
    held = builder.stable(own);
  }
  for (size_t round = 1; round <= last; ++round) {
    std::vector<int> others;
    std::vector<Operand> operands;
    for (const int member : shape.groups[round - 1]) {
      if (member != problem.rank) others.push_back(member);
      operands.push_back(member == problem.rank ? Operand{.slice = held} : Operand{.peer = member});
    }
    builder.send(others, held);
    held = result_of(round);
    builder.reduce(operands, held, round == last ? Finish::yes : Finish::no);
  }
  if (last == 0 && shape.team.empty()) builder.copy(own, result);
  builder.send(shape.team, result);
}

double cost_recursive_doubling(const Problem& problem, const CostParameters& cost) {
  const auto bytes = static_cast<double>(problem.bytes());
  const int teams = largest_power(problem.size, problem.radix);
  const int members = (problem.size + teams - 1) / teams - 1;  // of the largest team, without its captain
  double us =
      rounds(teams, problem.radix) * (offer_us(cost, problem.radix - 1) + reduce_us(cost, problem.radix - 1, bytes));
  if (members > 0)
    us += 2 * offer_us(cost, members) + reduce_us(cost, members, bytes) + spread_us(cost, members, bytes);
  return us;
}

// Linear: rank r combines part r, reading all operands in one pass in rank order, and offers the result to all.
// Two rounds, (p-1)/p n bytes into each in both: a direct reduce_scatter and all_gather (Rabenseifner's halves without
// their log p steps). In segments, so that results spread while later ones are combined.
//
//   rank 0   a0 a1 a2          a0+b0+c0 -> 1 2          rank r's input in parts: a0 a1 a2 of rank 0, b0 b1 b2 of
//   rank 1   b0 b1 b2    =>    a1+b1+c1 -> 0 2          rank 1, c0 c1 c2 of rank 2
//   rank 2   c0 c1 c2          a2+b2+c2 -> 0 1
void build_linear(Builder& builder) {
  const Problem& problem = builder.problem();
  const auto peers = peers_after(problem.rank, problem.size);
  std::vector<std::vector<Range>> parts;
  size_t segment_count = 0;
  for (int rank = 0; rank < problem.size; ++rank) {
    parts.push_back(segments(part(problem.bytes(), problem.size, rank), problem.segment_bytes));
    segment_count = std::max(segment_count, parts.back().size());
  }
  const auto& mine = parts[static_cast<size_t>(problem.rank)];

  std::vector<Window> sends(parts.size(), Window(kInFlightPerPeer)), recvs = sends;
  Window reduces(kInFlightPerPeer);
  for (size_t i = 0; i < segment_count; ++i) {
    for (const int peer : peers) {
      const auto& theirs = parts[static_cast<size_t>(peer)];
      Window& window = sends[static_cast<size_t>(peer)];
      if (i < theirs.size())
        window.add(builder.send(peer, builder.input(theirs[i].offset, theirs[i].bytes), window.after()));
    }
    if (i < mine.size()) {
      const Slice result = builder.output(mine[i].offset, mine[i].bytes);
      const auto operands = all_in_rank_order(problem, builder.input(mine[i].offset, mine[i].bytes));
      reduces.add(builder.reduce(operands, result, Finish::yes, reduces.after()));
      builder.send(peers, result);
    }
    for (const int peer : peers) {
      const auto& theirs = parts[static_cast<size_t>(peer)];
      Window& window = recvs[static_cast<size_t>(peer)];
      if (i < theirs.size())
        window.add(builder.recv(peer, builder.output(theirs[i].offset, theirs[i].bytes), window.after()));
    }
  }
}

double part_bytes(const Problem& problem) { return static_cast<double>(problem.bytes()) / problem.size; }

double cost_linear(const Problem& problem, const CostParameters& cost) {
  if (problem.size == 1) return 0;
  const int peers = problem.size - 1;
  const double bytes = part_bytes(problem);
  // Posting: p-1 sends, a reduction, its send, p-1 receives, for each segment.
  const double later_segments = segment_count(bytes, problem.segment_bytes) - 1;
  return 2 * cost.alpha_us + 3 * (peers - 1) * cost.gap_us + later_segments * peers * segment_us(cost) +
         reduce_us(cost, peers, bytes) + peers * move_us(cost, bytes);
}

void tune_linear(Problem& problem, const CostParameters& cost) {
  const uint64_t bytes = part(problem.bytes(), problem.size, problem.size - 1).bytes;
  problem.segment_bytes = pipeline_segment(bytes, 2, problem.size * segment_us(cost), cost.beta_us_per_byte, 2);
}

// Ring: part b starts at rank b and travels once around; each rank adds its own, and the last to add has the result,
// which travels around once more. 2(p-1) hops of n/p bytes (Patarasuk and Yuan 2009). Partial results lie where the
// result will.
//
//   hop 0          send part r of the input to the right
//   hop k < p      combine part r-k from the left with the own one, and send it on
//   hop k < 2p-1   take the result of part r-k from the left, and send it on while k < 2p-2
void build_ring(Builder& builder) {
  const Problem& problem = builder.problem();
  const Ring ring{problem.rank, problem.size};
  if (problem.size == 1) {
    builder.copy(builder.input(0, problem.bytes()), builder.output(0, problem.bytes()));
    return;
  }
  Window arrivals(kInFlightPerPeer), sends(kInFlightPerPeer);
  for (int hop = 0; hop <= 2 * (problem.size - 1); ++hop) {
    const Range travelling = part(problem.bytes(), problem.size, ring.from(hop));
    for (const Range& piece : segments(travelling, problem.segment_bytes)) {
      const Slice own = builder.input(piece.offset, piece.bytes), result = builder.output(piece.offset, piece.bytes);
      if (hop >= problem.size) {
        arrivals.add(builder.recv(ring.left(), result, arrivals.after()));
      } else if (hop > 0) {
        const Operand operands[] = {{.peer = ring.left()}, {.slice = own}};
        const Finish finish = hop == problem.size - 1 ? Finish::yes : Finish::no;
        arrivals.add(builder.reduce(operands, result, finish, arrivals.after()));
      }
      if (hop < 2 * (problem.size - 1)) sends.add(builder.send(ring.right(), hop == 0 ? own : result, sends.after()));
    }
  }
}

double cost_ring(const Problem& problem, const CostParameters& cost) {
  const int hops = problem.size - 1;
  const double bytes = part_bytes(problem), count = segment_count(bytes, problem.segment_bytes);
  // A hop's first segment waits for the hop before; the others follow while it travels.
  const double hop = cost.alpha_us + (count - 1) * segment_us(cost);
  return hops * (2 * hop + reduce_us(cost, 1, bytes) + move_us(cost, bytes));
}

void tune_ring(Problem& problem, const CostParameters& cost) {
  const uint64_t bytes = part(problem.bytes(), problem.size, problem.size - 1).bytes;
  problem.segment_bytes =
      pipeline_segment(bytes, 1, segment_us(cost), cost.beta_us_per_byte, 2 * static_cast<uint64_t>(problem.size));
}

// K-nomial: reduce to rank 0 and broadcast from it, segment by segment. 2(p-1) messages in all, where others need
// p log p or p p: for more ranks than cores, and for very many.
void build_knomial(Builder& builder) {
  const Problem& problem = builder.problem();
  const Tree tree = knomial_tree(problem.rank, problem.size, 0, problem.radix);
  tree_reduce(builder, tree);
  tree_broadcast(builder, tree, builder.output(0, problem.bytes()));
}

double cost_knomial(const Problem& problem, const CostParameters& cost) {
  const int children = knomial_root_children(problem.size, problem.radix);
  return pipeline_us(
      cost, problem,
      [&](double bytes) {
        return knomial_reduce_us(problem, cost, bytes) + knomial_broadcast_us(problem, cost, bytes);
      },
      [&](double bytes) { return children * cost.gap_us + reduce_us(cost, children, bytes); });
}

constexpr Algorithm kAlgorithms[] = {
    {Operation::all_reduce, "one_shot", build_one_shot, cost_one_shot},
    {Operation::all_reduce, "recursive_doubling", build_recursive_doubling, cost_recursive_doubling,
     tune_radix<cost_recursive_doubling>},
    {Operation::all_reduce, "linear", build_linear, cost_linear, tune_linear},
    {Operation::all_reduce, "ring", build_ring, cost_ring, tune_ring},
    {Operation::all_reduce, "knomial", build_knomial, cost_knomial, tune_knomial<cost_knomial, 2>},
    {Operation::all_reduce, "node_first", node_first::build_all_reduce, nullptr, nullptr, node_first::fits,
     node_first::compose_all_reduce},
};

}  // namespace

std::span<const Algorithm> all_reduce_algorithms() { return kAlgorithms; }

}  // namespace tutti::internal
