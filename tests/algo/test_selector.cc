// The registry and the selector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "algo/cost.h"
#include "algo/layout.h"
#include "algo/selector.h"
#include "algo/shapes/knomial.h"
#include "tests/algo/proof_helpers.h"

namespace tutti::internal {
namespace {

using testing::HasSubstr;

Problem problem_of(Operation operation, int size, uint64_t bytes) {
  return {.operation = operation, .size = size, .count = bytes};
}

struct NamedCosts {
  const char* name;
  CostParameters parameters;
};
void PrintTo(const NamedCosts& costs, std::ostream* out) { *out << costs.name; }

// What holds for ranks with a core each, and where they share cores.
class Selection : public testing::TestWithParam<NamedCosts> {
 protected:
  const CostParameters& cost_ = GetParam().parameters;
};
INSTANTIATE_TEST_SUITE_P(Costs, Selection,
                         testing::Values(NamedCosts{"SharedMemory", kSharedMemory},
                                         NamedCosts{"SharedCores", kSharedCores}),
                         [](const auto& costs) { return costs.param.name; });

TEST_P(Selection, TakesTheCheapestAndBuildsIt) {
  const Choice small = select(problem_of(Operation::all_reduce, 4, 8), cost_);
  EXPECT_STREQ(small.algorithm->name, "one_shot");
  const Choice large = select(problem_of(Operation::all_reduce, 4, 16 << 20), cost_);
  EXPECT_STREQ(large.algorithm->name, "linear");
  EXPECT_GT(large.cost_us, small.cost_us);
  EXPECT_FALSE(build(small).steps.empty());
}

// A second round means that each core changes from rank to rank once more.
TEST(Selector, RoundsAreFewWhereRanksShareCores) {
  const Problem problem = problem_of(Operation::all_reduce, 4, 64 << 10);
  EXPECT_STREQ(select(problem, kSharedMemory).algorithm->name, "linear");
  EXPECT_STREQ(select(problem, kSharedCores).algorithm->name, "one_shot");
}

TEST(Selector, LargeReductionsAvoidBusyRoots) {
  // In a tree the root combines several times the bytes of any rank of the linear shape, or of the chain.
  for (const int size : {3, 4, 8, 16}) {
    EXPECT_STREQ(select(problem_of(Operation::all_reduce, size, 64 << 20), kSharedMemory).algorithm->name, "linear");
    EXPECT_STREQ(select(problem_of(Operation::reduce, size, 64 << 20), kSharedMemory).algorithm->name, "chain");
  }
}

TEST(Cost, CountsTheRootsChildren) {
  for (int size = 1; size <= 70; ++size)
    for (int radix = 2; radix <= 8; ++radix)
      EXPECT_EQ(knomial_root_children(size, radix), static_cast<int>(knomial_tree(0, size, 0, radix).children.size()))
          << size << ' ' << radix;
}

TEST_P(Selection, NothingFittingIsCheaper) {
  for (int operation = 0; operation < kOperationCount; ++operation)
    for (const int size : {1, 2, 3, 4, 8, 17, 64, 300})
      for (const uint64_t bytes : {0, 8, 4096, 1 << 20}) {
        const Problem problem = problem_of(static_cast<Operation>(operation), size, bytes);
        const Choice choice = select(problem, cost_);
        ASSERT_NE(choice.algorithm, nullptr);
        EXPECT_GE(choice.cost_us, 0);
        for (const Algorithm& algorithm : flat(algorithms(problem.operation))) {
          Problem tuned = problem;
          if (algorithm.tune != nullptr) algorithm.tune(tuned, cost_);
          EXPECT_LE(choice.cost_us, algorithm.cost(tuned, cost_)) << algorithm.name;
        }
      }
}

TEST_P(Selection, AllRanksDecideAlike) {
  for (int operation = 0; operation < kOperationCount; ++operation)
    for (const uint64_t bytes : {1, 5000, 3 << 20}) {
      Problem problem = problem_of(static_cast<Operation>(operation), 5, bytes);
      const Choice first = select(problem, cost_);
      for (problem.rank = 0; problem.rank < 5; ++problem.rank)
        for (const bool in_place : {false, true}) {
          problem.in_place = in_place;
          const Choice choice = select(problem, cost_);
          EXPECT_EQ(choice.algorithm, first.algorithm);
          EXPECT_EQ(choice.problem.segment_bytes, first.problem.segment_bytes);
          EXPECT_EQ(choice.problem.radix, first.problem.radix);
        }
    }
}

TEST_P(Selection, CostsGrowWithBytesAndAreNothingForOneRank) {
  for (const Algorithm& algorithm : flat(algorithms())) {
    if (algorithm.operation == Operation::send || algorithm.operation == Operation::recv) continue;
    SCOPED_TRACE(std::string(name(algorithm.operation)) + ":" + algorithm.name);
    const auto cost = [&](int size, uint64_t bytes) {
      Problem problem = problem_of(algorithm.operation, size, bytes);
      if (algorithm.tune != nullptr) algorithm.tune(problem, cost_);
      return algorithm.cost(problem, cost_);
    };
    EXPECT_EQ(cost(1, 0), 0);
    for (const int size : {2, 3, 7, 16, 100}) {
      EXPECT_GT(cost(size, 8), 0);
      if (algorithm.operation == Operation::barrier) continue;
      for (uint64_t bytes = 8; bytes < uint64_t{1} << 32; bytes *= 4)
        EXPECT_LT(cost(size, bytes), cost(size, bytes * 4));
    }
  }
}

TEST_P(Selection, SegmentsKeepTheirBounds) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.tune == nullptr) continue;
    SCOPED_TRACE(std::string(name(algorithm.operation)) + ":" + algorithm.name);
    for (const int size : {1, 2, 3, 64, 4096})
      for (uint64_t bytes = 1; bytes < uint64_t{1} << 42; bytes *= 8) {
        Problem problem = problem_of(algorithm.operation, size, bytes);
        algorithm.tune(problem, cost_);
        EXPECT_GE(problem.radix, 2);
        EXPECT_LE(problem.radix, kMaxRadix);
        EXPECT_EQ(problem.segment_bytes % 64, 0U);
        if (problem.segment_bytes != 0) {
          EXPECT_GE(problem.segment_bytes, 16U << 10);
        }
      }
  }
}

TEST(Selector, TreesAboveThirtyTwoKibibytesHaveSegments) {
  for (const char* text :
       {"broadcast:knomial", "broadcast:chain", "reduce:knomial", "reduce:chain", "all_reduce:knomial"}) {
    const auto overrides = parse_overrides(text);
    ASSERT_TRUE(overrides.ok());
    for (const Operation operation : {Operation::broadcast, Operation::reduce, Operation::all_reduce}) {
      if (overrides.value()[static_cast<size_t>(operation)] == nullptr) continue;
      for (const int size : {3, 8, 64})
        for (const uint64_t bytes : {33 << 10, 300 << 10, 64 << 20}) {
          const Choice choice = select(problem_of(operation, size, bytes), kSharedMemory, overrides.value());
          EXPECT_GT(choice.problem.segment_bytes, 0U) << text;
          EXPECT_LE(choice.problem.segment_bytes, 256U << 10) << text;
        }
    }
  }
}

// Four nodes of eight ranks, by shared memory inside and RDMA across.
class Cluster : public testing::Test {
 protected:
  static Layout layout_of(int nodes, int ranks_on_each) {
    std::vector<int> node_of;
    for (int rank = 0; rank < nodes * ranks_on_each; ++rank) node_of.push_back(rank / ranks_on_each);
    return Layout(node_of);
  }
  static Problem on(const Layout& layout, Operation operation, uint64_t bytes) {
    Problem problem = problem_of(operation, layout.rank_count(), operation == Operation::barrier ? 0 : bytes);
    problem.layout = &layout;
    return problem;
  }
  const Layout layout_ = layout_of(4, 8);
  const Costs costs_{kSharedMemory, kRdma};
};

TEST_F(Cluster, ALeaderCarriesShortMessagesAndEveryRankItsSliceOfLongOnes) {
  const Choice small = select(on(layout_, Operation::all_reduce, 8), costs_);
  EXPECT_STREQ(small.algorithm->name, "node_first");
  EXPECT_EQ(small.problem.composition.lanes, 1);
  const Choice large = select(on(layout_, Operation::all_reduce, 16 << 20), costs_);
  EXPECT_STREQ(large.algorithm->name, "node_first");
  EXPECT_EQ(large.problem.composition.lanes, 8);
  EXPECT_GT(large.problem.segment_bytes, 0U);
  EXPECT_LT(large.problem.segment_bytes, 2U << 20) << "a lane's share is pipelined";
}

TEST_F(Cluster, NodeFirstNeedsAnInsideAndAnOutside) {
  const Layout one_node = layout_of(1, 8), single_ranks = layout_of(8, 1);
  for (int operation = 0; operation < kOperationCount; ++operation)
    for (const uint64_t bytes : {8, 1 << 20})
      for (const Layout* layout : {&one_node, &single_ranks}) {
        const Problem problem = on(*layout, static_cast<Operation>(operation), bytes);
        EXPECT_EQ(select(problem, costs_).algorithm->compose, nullptr);
        const auto overrides = parse_overrides("all_reduce:node_first,barrier:node_first");
        ASSERT_TRUE(overrides.ok());
        EXPECT_EQ(select(problem, costs_, overrides.value()).algorithm->compose, nullptr) << "it is passed over";
      }
}

TEST_F(Cluster, FlatAlgorithmsCostWhatTheirNetworkDoes) {
  const Layout one_node = layout_of(1, 32);
  const Algorithm& one_shot = algorithms(Operation::all_reduce)[0];
  const Problem inside = on(one_node, Operation::all_reduce, 4096), across = on(layout_, Operation::all_reduce, 4096);
  EXPECT_EQ(priced(one_shot, inside, costs_).cost_us, one_shot.cost(inside, kSharedMemory));
  EXPECT_EQ(priced(one_shot, across, costs_).cost_us, one_shot.cost(across, kRdma));
}

TEST_F(Cluster, OverridesNameIt) {
  const auto overrides = parse_overrides("all_to_all:node_first");
  ASSERT_TRUE(overrides.ok());
  EXPECT_STREQ(select(on(layout_, Operation::all_to_all, 1 << 20), costs_, overrides.value()).algorithm->name,
               "node_first");
  EXPECT_STREQ(select(on(layout_, Operation::all_to_all, 1 << 20), costs_).algorithm->name, "linear")
      << "long blocks gain nothing by a second message";
}

TEST_F(Cluster, AllRanksDecideAlike) {
  for (int operation = 0; operation < kOperationCount; ++operation)
    for (const uint64_t bytes : {1, 5000, 3 << 20}) {
      Problem problem = on(layout_, static_cast<Operation>(operation), bytes);
      const Choice first = select(problem, costs_);
      for (problem.rank = 0; problem.rank < problem.size; problem.rank += 5)
        for (const bool in_place : {false, true}) {
          problem.in_place = in_place;
          const Choice choice = select(problem, costs_);
          EXPECT_EQ(choice.algorithm, first.algorithm);
          EXPECT_EQ(choice.problem.segment_bytes, first.problem.segment_bytes);
          EXPECT_EQ(choice.problem.composition, first.problem.composition);
        }
    }
}

TEST_F(Cluster, ComposedCostsGrowWithBytes) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.compose == nullptr || algorithm.operation == Operation::barrier) continue;
    for (uint64_t bytes = 8; bytes < uint64_t{1} << 36; bytes *= 4)
      EXPECT_LT(priced(algorithm, on(layout_, algorithm.operation, bytes), costs_).cost_us,
                priced(algorithm, on(layout_, algorithm.operation, bytes * 4), costs_).cost_us)
          << name(algorithm.operation) << ' ' << bytes;
  }
}

// A network's port sends what each reader takes; memory does not.
TEST(Cost, ManyReadersWaitForTheSendersPort) {
  const Problem problem = problem_of(Operation::broadcast, 64, 4 << 20);
  const Algorithm& linear = algorithms(Operation::broadcast)[0];
  EXPECT_GT(linear.cost(problem, kRdma), 63 * (4 << 20) * kRdma.beta_us_per_byte);
  EXPECT_LT(linear.cost(problem, kSharedMemory), 2 * (4 << 20) * kSharedMemory.beta_us_per_byte);
}

TEST(Registry, NamesAreUniqueAndKnown) {
  std::set<std::pair<Operation, std::string>> names;
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_TRUE(names.insert({algorithm.operation, algorithm.name}).second) << algorithm.name;
    EXPECT_THAT((std::vector<std::string>{"one_shot", "knomial", "recursive_doubling", "ring", "chain", "linear",
                                          "dissemination", "direct", "node_first"}),
                testing::Contains(algorithm.name));
  }
  for (int operation = 0; operation < kOperationCount; ++operation) {
    EXPECT_FALSE(algorithms(static_cast<Operation>(operation)).empty());
    for (const Algorithm& algorithm : algorithms(static_cast<Operation>(operation)))
      EXPECT_EQ(algorithm.operation, static_cast<Operation>(operation));
  }
}

TEST(Overrides, NameAnAlgorithmForAnOperation) {
  const auto overrides = parse_overrides("all_reduce:ring, broadcast : chain");
  ASSERT_TRUE(overrides.ok());
  const Choice ring = select(problem_of(Operation::all_reduce, 2, 8), kSharedMemory, overrides.value());
  EXPECT_STREQ(ring.algorithm->name, "ring");
  EXPECT_GT(ring.problem.segment_bytes, 0U) << "it is tuned like any other";
  EXPECT_STREQ(select(problem_of(Operation::broadcast, 2, 8), kSharedMemory, overrides.value()).algorithm->name,
               "chain");
  EXPECT_STREQ(select(problem_of(Operation::barrier, 2, 0), kSharedMemory, overrides.value()).algorithm->name,
               "one_shot");
}

TEST(Overrides, NoneIsNone) {
  for (const char* text : {"", "  "}) {
    const auto overrides = parse_overrides(text);
    ASSERT_TRUE(overrides.ok());
    for (const Algorithm* algorithm : overrides.value()) EXPECT_EQ(algorithm, nullptr);
  }
}

TEST(Overrides, OneThatDoesNotFitIsPassedOver) {
  static const Algorithm never{
      Operation::barrier, "never", nullptr, nullptr, nullptr, [](const Problem&) { return false; }};
  Overrides overrides{};
  overrides[static_cast<size_t>(Operation::barrier)] = &never;
  EXPECT_STREQ(select(problem_of(Operation::barrier, 2, 0), kSharedMemory, overrides).algorithm->name, "one_shot");
}

std::string refusal_of(const char* text) {
  const auto overrides = parse_overrides(text);
  EXPECT_FALSE(overrides.ok()) << text;
  EXPECT_EQ(overrides.status().code(), Code::invalid_argument);
  return overrides.status().message();
}

TEST(Overrides, MisspeltNamesAreRefusedWithTheValidOnes) {
  EXPECT_THAT(
      refusal_of("all_reduce:rnig"),
      testing::AllOf(HasSubstr("\"rnig\""), HasSubstr("it has one_shot, recursive_doubling, linear, ring, knomial")));
  EXPECT_THAT(refusal_of("allreduce:ring"),
              testing::AllOf(HasSubstr("\"allreduce\""), HasSubstr("barrier, broadcast, "), HasSubstr("all_reduce")));
  EXPECT_THAT(refusal_of("broadcast:ring"), HasSubstr("it has linear, knomial, chain"));
  EXPECT_THAT(refusal_of("ring"), HasSubstr("operation:algorithm"));
  EXPECT_THAT(refusal_of("all_reduce:ring,"), HasSubstr("operation:algorithm"));
  EXPECT_THAT(refusal_of("all_reduce:"), HasSubstr("\"\""));
  EXPECT_THAT(refusal_of("all_reduce:ring:2"), HasSubstr("\"ring:2\""));
  EXPECT_THAT(refusal_of("all_reduce:ring,all_reduce:linear"), HasSubstr("has one already, \"ring\""));
}

}  // namespace
}  // namespace tutti::internal
