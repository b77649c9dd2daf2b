// Schedules of ranks that reach each other in different ways: no step that exchanges messages with peers of two.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "algo/selector.h"
#include "algo/verifier.h"
#include "algo/ways.h"
#include "tests/algo/proof_helpers.h"

namespace tutti::internal {
namespace {

TEST(Ways, ASendIsOneForEachWay) {
  Builder builder({.operation = Operation::broadcast, .rank = 0, .size = 5, .count = 10});
  builder.send(std::vector{1, 2, 3, 4}, builder.output(0, 10));
  EXPECT_EQ(to_text(split_ways(builder.take(), std::vector{0, 0, 1, 0, 1})),
            "0 send output[0,10) -> 1 3\n"
            "1 send output[0,10) -> 2 4\n");
}

TEST(Ways, AReductionTakesOneWayAndStagesTheOthersInTheirPlace) {
  Builder builder({.operation = Operation::reduce, .rank = 0, .size = 4, .count = 10});
  const Operand operands[] = {{.peer = 2}, {.slice = builder.input(0, 10)}, {.peer = 3}, {.peer = 1}};
  builder.reduce(operands, builder.output(0, 10), Finish::yes);
  EXPECT_EQ(to_text(split_ways(builder.take(), std::vector{0, 2, 2, 1})),
            "0 recv from 2 -> scratch[0,10)\n"
            "1 recv from 1 -> scratch[64,74)\n"
            "2 reduce scratch[0,10) input[0,10) from 3 scratch[64,74) -> output[0,10) finish  after 0 1\n");
}

TEST(Ways, WhatWaitsForTheWholeWaitsForEachPart) {
  Builder builder({.operation = Operation::gather, .rank = 0, .size = 3, .count = 10});
  const StepId sent = builder.send(std::vector{1, 2}, builder.input(0, 10));
  builder.recv(1, builder.output(10, 10), std::vector{sent});
  EXPECT_EQ(to_text(split_ways(builder.take(), std::vector{0, 0, 1})),
            "0 send input[0,10) -> 1\n"
            "1 send input[0,10) -> 2\n"
            "2 recv from 1 -> output[10,20)  after 0 1\n");
}

TEST(Ways, NothingChangesWhereThereIsOneWay) {
  const Problem problem{.operation = Operation::all_reduce, .rank = 1, .size = 6, .count = 100, .element_bytes = 4};
  const Schedule schedule = build(select(problem, kSharedMemory));
  EXPECT_EQ(to_text(split_ways(schedule, std::vector(6, 3))), to_text(schedule));
}

void expect_one_way(const Schedule& schedule, const std::vector<int>& way_of) {
  for (const Step& step : schedule.steps) {
    std::set<int> ways;
    for (const int32_t peer : schedule.peers_of(step)) ways.insert(way_of[static_cast<size_t>(peer)]);
    for (const Operand& operand : schedule.operands_of(step))
      if (operand.peer != Operand::kLocal) ways.insert(way_of[static_cast<size_t>(operand.peer)]);
    EXPECT_LE(ways.size(), 1U);
  }
}

TEST(Ways, AllAlgorithmsAreProvedOverAnyWays) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (const Algorithm& algorithm : algorithms()) {
    if (is_pairwise(algorithm.operation)) continue;
    for (int size = 1; size <= 12; ++size)
      for (const uint64_t count : {0, 1, 15}) {  // staged on a cache line each: within what a schedule may ask for
        const Problem base{.operation = algorithm.operation,
                           .size = size,
                           .root = static_cast<int>(random() % static_cast<uint64_t>(size)),
                           .count = algorithm.operation == Operation::barrier ? 0 : count,
                           .element_bytes = 4,
                           .radix = 2 + static_cast<int>(random() % 3)};
        if (algorithm.fits != nullptr && !algorithm.fits(base)) continue;
        const auto in_place = ranks_in_place(size, InPlace::mixed, random);
        std::vector<Problem> problems;
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < size; ++rank) {
          Problem& problem = problems.emplace_back(base);
          problem.rank = rank;
          problem.in_place = in_place[static_cast<size_t>(rank)];
          std::vector<int> way_of(static_cast<size_t>(size));
          for (int& way : way_of) way = static_cast<int>(random() % 3);
          schedules.push_back(split_ways(build({&algorithm, problem}), way_of));
          expect_one_way(schedules.back(), way_of);
        }
        const Status status = verify(problems, schedules);
        ASSERT_TRUE(status.ok()) << text_of(algorithm, base) << ": " << status.message();
      }
  }
}

}  // namespace
}  // namespace tutti::internal
