// See prices.h. Pure arithmetic.
#include "algo/node_first/prices.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "algo/cost.h"
#include "algo/layout.h"
#include "algo/node_first/node_first.h"
#include "algo/peers.h"
#include "algo/selector.h"

namespace tutti::internal::node_first {
namespace {

constexpr uint64_t kShortestSegment = 32 << 10, kLongestSegment = 2 << 20;

uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// A message's latency covered by others: what is left are the ranks' hands and the bytes.
CostParameters without_latency(CostParameters cost) {
  cost.alpha_us = cost.gap_us;
  return cost;
}

// More lanes than the smallest node has ranks make its ranks carry several; that is still the same bytes across.
std::set<int> lane_counts(const Layout& layout) {
  std::set<int> counts{1, layout.fewest(), layout.most()};
  for (int lanes = 2; lanes < layout.most(); lanes *= 2) counts.insert(lanes);
  return counts;
}

// Segment lengths for `bytes`; 0: one segment. No pair of ranks exchanges more messages than it may.
std::set<uint64_t> segment_lengths(const Candidate& candidate, uint64_t bytes) {
  const auto per_segment = static_cast<uint64_t>(2 * (candidate.nodes() + 1)) *
                           static_cast<uint64_t>(candidate.lanes_per_rank() * candidate.blocks_per_lane());
  const uint64_t least = ceil_div(bytes, std::max<uint64_t>(kMaxMessagesPerPair / per_segment, 1));
  std::set<uint64_t> lengths;
  if (bytes <= kLongestSegment) lengths.insert(0);
  for (uint64_t length = kShortestSegment; length <= kLongestSegment; length *= 4) {
    const uint64_t possible = ceil_div(std::max(length, least), 64) * 64;
    if (possible < bytes) lengths.insert(possible);
  }
  if (lengths.empty()) lengths.insert(0);
  return lengths;
}

// The first segment goes all the way; each later one follows when the busiest has done its share, inside and across
// side by side.
double pipelined_us(const Prices& prices, double segments) {
  const double first = prices.in.us + prices.across.us + prices.out.us;
  const double later = std::max(
      {prices.in.busy_us + prices.out.busy_us, prices.across.busy_us, first / static_cast<double>(kInFlightPerPeer)});
  return first + (segments - 1) * later;
}

}  // namespace

int Candidate::nodes() const { return problem.layout->node_count(); }
int Candidate::ranks() const { return problem.layout->most(); }
int Candidate::lanes_per_rank() const { return (lanes() + problem.layout->fewest() - 1) / problem.layout->fewest(); }
int Candidate::blocks_per_lane() const { return (ranks() + lanes() - 1) / lanes(); }

double Candidate::part_bytes() const {
  const auto bytes = static_cast<double>(problem.bytes()) / lanes();
  return is_segmented() ? std::min(bytes, static_cast<double>(problem.segment_bytes)) : bytes;
}
double Candidate::block_bytes() const {
  const auto bytes = static_cast<double>(problem.bytes());
  return is_segmented() ? std::min(bytes, static_cast<double>(problem.segment_bytes)) : bytes;
}
bool Candidate::is_segmented() const { return problem.segment_bytes != 0; }

Price Candidate::stage(Stage& stage, Operation operation, int size, double bytes, int times, const CostParameters& cost,
                       bool linear) const {
  const Problem whole{.operation = operation,
                      .size = size,
                      .count = static_cast<uint64_t>(std::ceil(bytes / problem.element_bytes)),
                      .element_bytes = problem.element_bytes};
  Price best;
  stage = {};
  for (const Algorithm& algorithm : algorithms(operation)) {
    if (algorithm.compose != nullptr || (linear && std::string_view(algorithm.name) != "linear")) continue;
    Problem tuned = priced(algorithm, whole, cost).problem;
    if (is_segmented()) tuned.segment_bytes = 0;
    const double us = algorithm.cost(tuned, cost);
    if (stage.algorithm != nullptr && us >= best.us) continue;
    stage = {&algorithm, tuned.segment_bytes, tuned.radix};
    best = {us, algorithm.cost(tuned, without_latency(cost))};
  }
  best.us += (times - 1) * best.busy_us;
  best.busy_us *= times;
  return best;
}

Price Candidate::in(Operation operation, double bytes, int times) {
  return stage(problem.composition.in, operation, ranks(), bytes, times, costs.within, lanes() > 1);
}
Price Candidate::across(Operation operation, double bytes, int times) {
  return stage(problem.composition.across, operation, nodes(), bytes, times, costs.across, false);
}
Price Candidate::out(Operation operation, double bytes, int times) {
  return stage(problem.composition.out, operation, ranks(), bytes, times, costs.within, lanes() > 1);
}

double cheapest(Problem& problem, const Costs& costs, Cut cut, Prices (*prices)(Candidate&)) {
  double least = -1;
  const Problem plain = problem;
  for (const int lanes : lane_counts(*problem.layout)) {
    Candidate candidate(plain, costs);
    candidate.problem.composition.lanes = lanes;
    const uint64_t bytes = cut == Cut::vector ? part(plain.bytes(), lanes, lanes - 1).bytes : plain.bytes();
    for (const uint64_t length : segment_lengths(candidate, bytes)) {
      Candidate segmented = candidate;
      segmented.problem.segment_bytes = length;
      const double us = pipelined_us(prices(segmented), segment_count(static_cast<double>(bytes), length));
      if (least >= 0 && us >= least) continue;
      least = us;
      problem = segmented.problem;
    }
  }
  return least;
}

// A rank sends to the owners of all lanes, and combines as the owner of its own.
double compose_all_reduce(Problem& problem, const Costs& costs) {
  return cheapest(problem, costs, Cut::vector, [](Candidate& candidate) {
    const double bytes = candidate.part_bytes();
    const int own = candidate.lanes_per_rank();
    Prices prices{candidate.in(Operation::reduce, bytes, own), candidate.across(Operation::all_reduce, bytes, own),
                  candidate.out(Operation::broadcast, bytes, std::max(candidate.lanes() - 1, 1))};
    prices.in.us += (candidate.lanes() - 1) * candidate.costs.within.gap_us;
    return prices;
  });
}

double compose_reduce(Problem& problem, const Costs& costs) {
  return cheapest(problem, costs, Cut::vector, [](Candidate& candidate) {
    const double bytes = candidate.part_bytes();
    const int own = candidate.lanes_per_rank(), others = candidate.lanes() - 1;
    Prices prices{candidate.in(Operation::reduce, bytes, own), candidate.across(Operation::reduce, bytes, own), {}};
    prices.in.us += others * candidate.costs.within.gap_us;
    if (others > 0) {
      const double taken = others * (candidate.costs.within.gap_us + move_us(candidate.costs.within, bytes));
      prices.out = {candidate.costs.within.alpha_us + taken, taken};
    }
    return prices;
  });
}

// The root's own lane does not wait for the first stage.
double compose_broadcast(Problem& problem, const Costs& costs) {
  return cheapest(problem, costs, Cut::vector, [](Candidate& candidate) {
    const double bytes = candidate.part_bytes();
    const int own = candidate.lanes_per_rank();
    Prices prices{candidate.in(Operation::broadcast, bytes, candidate.lanes()),
                  candidate.across(Operation::broadcast, bytes, own),
                  candidate.out(Operation::broadcast, bytes, std::max(candidate.lanes() - 1, 1))};
    // Different nodes do the first stage and the last.
    prices.in.busy_us = 0;
    if (candidate.lanes() == 1) prices.in.us = 0;
    return prices;
  });
}

double compose_barrier(Problem& problem, const Costs& costs) {
  Candidate candidate(problem, costs);
  const double across = candidate.across(Operation::barrier, 0, 1).us;
  problem = candidate.problem;
  return across + 2 * offer_us(costs.within, candidate.ranks() - 1);
}

double compose_all_gather(Problem& problem, const Costs& costs) {
  return cheapest(problem, costs, Cut::blocks, [](Candidate& candidate) {
    const double bytes = candidate.block_bytes();
    if (candidate.lanes() == 1)
      return Prices{candidate.in(Operation::gather, bytes, 1),
                    candidate.across(Operation::all_gather, bytes * candidate.ranks(), 1),
                    candidate.out(Operation::broadcast, bytes * candidate.problem.size, 1)};
    return Prices{
        candidate.in(Operation::all_gather, bytes, 1),
        candidate.across(Operation::all_gather, bytes, candidate.lanes_per_rank() * candidate.blocks_per_lane()),
        candidate.out(Operation::broadcast, bytes, candidate.problem.size - candidate.ranks())};
  });
}

double compose_reduce_scatter(Problem& problem, const Costs& costs) {
  return cheapest(problem, costs, Cut::blocks, [](Candidate& candidate) {
    const double bytes = candidate.block_bytes();
    const int size = candidate.problem.size;
    if (candidate.lanes() == 1)
      return Prices{candidate.in(Operation::reduce, bytes * size, 1),
                    candidate.across(Operation::reduce_scatter, bytes * candidate.ranks(), 1),
                    candidate.out(Operation::scatter, bytes, 1)};
    const CostParameters& within = candidate.costs.within;
    const int carried = candidate.lanes_per_rank() * candidate.blocks_per_lane();
    Prices prices{candidate.in(Operation::reduce, bytes, carried * candidate.nodes()),
                  candidate.across(Operation::reduce_scatter, bytes, carried),
                  {}};
    prices.in.us += size * within.gap_us;
    prices.in.busy_us += size * within.gap_us;
    if (carried > 1) prices.out = {offer_us(within, carried) + move_us(within, bytes), move_us(within, bytes)};
    return prices;
  });
}

namespace {

// Scatter and gather: with several lanes each block is a message of its own on its way. The port at the root's node is
// the narrowest place, and at the root all blocks pass inside, but for its own lane's.
Prices prices_of_ways(Candidate& candidate, Operation operation) {
  const double bytes = candidate.block_bytes();
  const CostParameters &within = candidate.costs.within, &across = candidate.costs.across;
  const int blocks = candidate.problem.size - candidate.ranks();
  const bool scatters = operation == Operation::scatter;
  if (candidate.lanes() == 1) {
    Prices prices;
    const Price inside = scatters ? candidate.out(operation, bytes, 1) : candidate.in(operation, bytes, 1);
    (scatters ? prices.out : prices.in) = inside;
    prices.across = candidate.across(operation, bytes * candidate.ranks(), 1);
    return prices;
  }
  const double carried = static_cast<double>(blocks) / candidate.lanes() * candidate.lanes_per_rank();
  const double at_root = blocks * (within.gap_us + (scatters ? 0 : move_us(within, bytes)));
  const double at_owner = carried * (across.gap_us + move_us(across, bytes));
  const Price inside{within.alpha_us + at_root + (scatters ? carried * move_us(within, bytes) : 0), at_root};
  const Price last{within.alpha_us + move_us(within, bytes), move_us(within, bytes)};
  return {scatters ? inside : last, {across.alpha_us + at_owner, at_owner}, scatters ? last : inside};
}

}  // namespace

double compose_scatter(Problem& problem, const Costs& costs) {
  return cheapest(problem, costs, Cut::blocks,
                  [](Candidate& candidate) { return prices_of_ways(candidate, Operation::scatter); });
}

double compose_gather(Problem& problem, const Costs& costs) {
  return cheapest(problem, costs, Cut::blocks,
                  [](Candidate& candidate) { return prices_of_ways(candidate, Operation::gather); });
}

// Inside: a message for each block that is another's to carry, and for each of its node's that it carries.
double compose_all_to_all(Problem& problem, const Costs& costs) {
  Candidate candidate(problem, costs);
  candidate.problem.composition.lanes = candidate.ranks();
  const auto bytes = static_cast<double>(problem.bytes());
  const double own = candidate.in(Operation::all_to_all, bytes, 1).us;
  const int blocks = problem.size - candidate.ranks();
  const double inside =
      costs.within.alpha_us + 2 * blocks * costs.within.gap_us + blocks * move_us(costs.within, bytes);
  const double carried = candidate.lanes_per_rank() * blocks * move_us(costs.across, bytes);
  const double across = costs.across.alpha_us + 2 * (candidate.nodes() - 2) * costs.across.gap_us + carried;
  problem = candidate.problem;
  return own + inside + across;
}

}  // namespace tutti::internal::node_first
