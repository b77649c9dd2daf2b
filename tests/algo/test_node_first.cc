// Node-first algorithms, proved: rank counts and layouts of all kinds, every root, sizes around each boundary, in place
// and not, every number of lanes, in segments and not, each stage by each algorithm that it may take.
//
// A case is a seeded sample of the many combinations; the seed is in the name of what fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "algo/layout.h"
#include "algo/partition.h"
#include "algo/selector.h"
#include "algo/verifier.h"
#include "tests/algo/proof_helpers.h"

namespace tutti::internal {
namespace {

constexpr uint64_t kSegment = 128;  // forced, so that few bytes make many segments

// Which node each rank is on.
using NodeOf = std::vector<int>;

// {3, 1}: three ranks on one node, one on the next.
NodeOf blocked(const std::vector<int>& ranks_on) {
  NodeOf node_of;
  for (size_t node = 0; node < ranks_on.size(); ++node)
    node_of.insert(node_of.end(), static_cast<size_t>(ranks_on[node]), static_cast<int>(node));
  return node_of;
}

// Layouts of `size` ranks that have an inside and an outside.
std::vector<NodeOf> layouts_of(int size, std::mt19937_64& random) {
  std::set<NodeOf> found;
  const auto add = [&](const NodeOf& node_of) {
    if (Layout(node_of).has_two_levels()) found.insert(node_of);
  };
  for (int nodes = 2; nodes < size; ++nodes) {
    if (nodes > 4 && size % nodes != 0) continue;
    NodeOf even, dealt;
    for (int rank = 0; rank < size; ++rank) {
      even.push_back(rank * nodes / size);
      dealt.push_back(rank % nodes);
    }
    add(even);
    add(dealt);
  }
  for (const int large : {2, size / 2, size - 1}) {  // one large node and single ranks, at either end
    NodeOf node_of(static_cast<size_t>(size));
    std::iota(node_of.begin(), node_of.end(), 0);
    std::fill_n(node_of.begin(), std::clamp(large, 1, size), 0);
    add(node_of);
    std::reverse(node_of.begin(), node_of.end());
    add(node_of);
  }
  if (size > 3) add(blocked({2, 1, size - 3}));
  for (int i = 0; i < 2; ++i) {  // without any order
    NodeOf node_of;
    for (int rank = 0; rank < size; ++rank) node_of.push_back(static_cast<int>(random() % 4));
    add(node_of);
  }
  return {found.begin(), found.end()};
}

const Algorithm& node_first(Operation operation) {
  const auto all = algorithms(operation);
  return *std::find_if(all.begin(), all.end(), [](const Algorithm& a) { return a.compose != nullptr; });
}

// Any flat algorithm of an operation, with any radix and segment.
Stage any_stage(Operation operation, std::mt19937_64& random) {
  std::vector<const Algorithm*> flat;
  for (const Algorithm& algorithm : algorithms(operation))
    if (algorithm.compose == nullptr) flat.push_back(&algorithm);
  return {flat[random() % flat.size()], random() % 2 == 0 ? kSegment : 0, 2 + static_cast<int>(random() % 7)};
}

// What the stages of an operation do, as its builder has it.
struct StageOperations {
  Operation in, across, out;
};
StageOperations stages_of(Operation operation, int lanes) {
  using enum Operation;
  switch (operation) {
    case all_reduce: return {reduce, all_reduce, broadcast};
    case all_gather: return {lanes == 1 ? gather : all_gather, all_gather, broadcast};
    case reduce_scatter: return {reduce, reduce_scatter, scatter};
    case reduce: return {reduce, reduce, reduce};
    default: return {operation, operation, operation};
  }
}

struct Sample {
  NodeOf node_of;
  Problem problem;
  InPlace in_place = InPlace::none;
};

std::string text_of(const Stage& stage) {
  return std::string(stage.algorithm == nullptr ? "none" : stage.algorithm->name) + "/" +
         std::to_string(stage.segment_bytes) + "/" + std::to_string(stage.radix);
}

void expect_proved(const Algorithm& algorithm, Sample sample, std::mt19937_64& random) {
  const Layout layout(sample.node_of);
  sample.problem.layout = &layout;
  const auto in_place = ranks_in_place(sample.problem.size, sample.in_place, random);
  const Status status = prove(algorithm, sample.problem, in_place);
  const Composition& stages = sample.problem.composition;
  ASSERT_TRUE(status.ok()) << text_of(algorithm, sample.problem) << " lanes " << stages.lanes << " nodes "
                           << testing::PrintToString(sample.node_of) << " stages " << text_of(stages.in) << ' '
                           << text_of(stages.across) << ' ' << text_of(stages.out) << " in place "
                           << testing::PrintToString(in_place) << ": " << status.message();
}

std::vector<uint64_t> counts_for(Operation operation, int size, int lanes, uint32_t element_bytes) {
  if (operation == Operation::barrier) return {0};
  const uint64_t line = 64 / element_bytes, segment = kSegment / element_bytes;
  std::vector<uint64_t> counts{0, 1, static_cast<uint64_t>(size), line, segment - 1, segment, segment + 1};
  counts.push_back(5 * segment + 1);
  if (operation == Operation::all_reduce || operation == Operation::reduce || operation == Operation::broadcast)
    for (const uint64_t length : {line, segment, 6 * segment})
      for (const uint64_t more : {0, 1}) counts.push_back(static_cast<uint64_t>(lanes) * length + more);
  return counts;
}

Sample any_sample(Operation operation, const NodeOf& node_of, int root, std::mt19937_64& random) {
  const auto pick = [&](const auto& from) { return from[random() % from.size()]; };
  Sample sample{node_of, {.operation = operation, .size = static_cast<int>(node_of.size()), .root = root}};
  Problem& problem = sample.problem;
  const int lanes = 1 + static_cast<int>(random() % static_cast<uint64_t>(Layout(node_of).most()));
  const StageOperations stages = stages_of(operation, lanes);
  problem.composition = {lanes, any_stage(stages.in, random), any_stage(stages.across, random),
                         any_stage(stages.out, random)};
  problem.element_bytes = pick(std::vector<uint32_t>{4, 1});
  problem.count = pick(counts_for(operation, problem.size, lanes, problem.element_bytes));
  problem.segment_bytes = pick(std::vector<uint64_t>{kSegment, 0});
  sample.in_place = pick(std::vector<InPlace>{InPlace::none, InPlace::all, InPlace::mixed});
  return sample;
}

class NodeFirst : public testing::TestWithParam<Operation> {
 protected:
  const Algorithm& algorithm_ = node_first(GetParam());
};

TEST_P(NodeFirst, FewRanksEveryLayoutAndRoot) {
  for (int size = 3; size <= 16; ++size) {
    std::mt19937_64 random(static_cast<uint64_t>(size));
    for (const NodeOf& node_of : layouts_of(size, random))
      for (int root = 0; root < (is_rooted(GetParam()) ? size : 1); ++root)
        for (int i = 0; i < (is_rooted(GetParam()) ? 4 : 40); ++i)
          ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm_, any_sample(GetParam(), node_of, root, random), random));
  }
}

INSTANTIATE_TEST_SUITE_P(All, NodeFirst,
                         testing::Values(Operation::barrier, Operation::broadcast, Operation::reduce,
                                         Operation::all_reduce, Operation::reduce_scatter, Operation::scatter,
                                         Operation::gather, Operation::all_gather, Operation::all_to_all),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace tutti::internal
