// A rank of a world of processes that runs the sample of all collectives, and every operation from every root: the
// matrix over nodes, where ranks cannot be threads. Its argument: the most elements of a block. Its status is 1 where a
// result is wrong.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "case_sample.h"
#include "collective_case.h"

namespace tutti_test {
namespace {

uint64_t most_count = kMostCount;

TEST(CollectivesWorker, IsRight) {
  tutti_group* world = nullptr;
  ASSERT_TUTTI_OK(tutti_init(nullptr, &world));
  const int ranks = tutti_group_size(world);
  const auto cases = sampled_cases({ranks}, most_count, sample_seed()).at(ranks);
  for (const Case& c : cases) run_case(world, c);
  for (const Operation operation : kOperations)
    for (int root = 0; root < ranks; ++root)
      for (const uint64_t count : {0U, 1U, 5000U})
        run_case(world, {.operation = operation, .count = count, .root = root});
  EXPECT_TUTTI_OK(tutti_group_free(world));
  std::printf("%zu cases, seed %u (TUTTI_TEST_SEED)\n", cases.size(), sample_seed());
}

}  // namespace
}  // namespace tutti_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) tutti_test::most_count = std::strtoull(argv[1], nullptr, 10);
  return RUN_ALL_TESTS();
}
