// Ranks of tutti-run join through the store that it serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "launched.h"

namespace {

using ::testing::HasSubstr;
using tutti_test::Launched;

TEST(Join, RanksMeetAtTheLaunchersStore) {
  for (const int ranks : {1, 2, 5}) {
    Launched run({"-n", std::to_string(ranks), TUTTI_JOIN_WORKER});
    EXPECT_EQ(run.wait(), 0) << run.err();
    const std::string line = std::to_string(ranks * (ranks - 1) / 2) + " of " + std::to_string(ranks) + "\n";
    std::string expected;
    for (int rank = 0; rank < ranks; ++rank) expected += line;
    EXPECT_EQ(run.out(), expected);
    EXPECT_EQ(run.err(), "");
    EXPECT_TRUE(run.is_all_gone());
  }
}

TEST(Join, JobsBesideEachOtherDoNotMeet) {
  Launched first({"-n", "2", TUTTI_JOIN_WORKER}), second({"-n", "3", TUTTI_JOIN_WORKER});
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(first.out(), "1 of 2\n1 of 2\n");
  EXPECT_EQ(second.out(), "3 of 3\n3 of 3\n3 of 3\n");
}

TEST(Join, WhenRankZeroFailsTheStoreIsStillThere) {
  // The launcher serves it, so the status is the one that rank 0 left with, and the others know who failed.
  Launched run({"-n", "3", TUTTI_JOIN_WORKER, "fail", "0"});
  EXPECT_EQ(run.wait(), 3) << run.err();
  EXPECT_THAT(run.err(), HasSubstr("rank 0 (process "));
  EXPECT_TRUE(run.is_all_gone());
}

}  // namespace
