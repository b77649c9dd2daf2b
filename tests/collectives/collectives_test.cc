// Every collective on real memory, over the dimensions that matter: a sample in which every pair of values occurs.
#include <gtest/gtest.h>

#include <cstdio>

#include "case_sample.h"
#include "collective_case.h"

namespace tutti_test {
namespace {

TEST(Collectives, AllReduceInPlaceAsAProgramWouldCallIt) {
  run_world(4, [](tutti_group* world, int rank) {
    std::vector<float> gradient(1000, static_cast<float>(rank));
    EXPECT_TUTTI_OK(
        tutti_all_reduce(world, gradient.data(), gradient.data(), gradient.size(), TUTTI_FLOAT32, TUTTI_SUM, nullptr));
    EXPECT_EQ(gradient, std::vector<float>(1000, 0 + 1 + 2 + 3));
  });
}

const std::vector<int> kRanks{1, 2, 3, 4, 5, 7, 8};

TEST(Collectives, SampleInWhichEveryPairOfValuesOccurs) {
  size_t total = 0;
  for (const auto& [ranks, cases] : sampled_cases(kRanks, kMostCount, sample_seed())) {
    total += cases.size();
    run_world(ranks, [&](tutti_group* world, int) {
      for (const Case& c : cases) run_case(world, c);
    });
  }
  RecordProperty("cases", static_cast<int>(total));
  std::printf("%zu cases, seed %u (TUTTI_TEST_SEED)\n", total, sample_seed());
}

// Every type with every operator, and every operation with every rank count, in full at one size.
TEST(Collectives, EveryTypeAndOperator) {
  run_world(3, [](tutti_group* world, int) {
    for (int type = 0; type < 12; ++type)
      for (int op = 0; op < 8; ++op) {
        if (is_bitwise_op(static_cast<tutti_op>(op)) && is_float_type(static_cast<tutti_type>(type))) continue;
        for (Operation operation : {Operation::all_reduce, Operation::reduce, Operation::reduce_scatter})
          run_case(world, {.operation = operation,
                           .count = 259,
                           .type = static_cast<tutti_type>(type),
                           .op = static_cast<tutti_op>(op),
                           .root = 1});
      }
  });
}

TEST(Collectives, EveryRootAndRankCount) {
  for (int ranks : kRanks)
    run_world(ranks, [&](tutti_group* world, int) {
      for (Operation operation : kOperations)
        for (int root = 0; root < ranks; ++root)
          for (uint64_t count : {0u, 1u, 5000u})
            run_case(world, {.operation = operation, .count = count, .root = root});
    });
}

}  // namespace
}  // namespace tutti_test
