// Whom ranks believe when an operation times out.
#include "src/core/verdict.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti::internal {
namespace {

// 1 waits for its node's leader 0, who waits for 2, of whom nobody hears.
TEST(Verdict, TheOneThatNamesASilentRankIsBelieved) {
  Verdict verdict;
  verdict.add({1, 0, "rank 1 waits for rank 0"});
  verdict.add({3, 0, "rank 3 waits for rank 0"});
  verdict.add({0, 2, "rank 0 waits for rank 2"});
  for (const int own : {0, 1, 3}) EXPECT_EQ(verdict.believed(own).text, "rank 0 waits for rank 2");
}

TEST(Verdict, OfSeveralTheLowestRankIsBelievedWhoeverComesFirst) {
  Verdict verdict;
  verdict.add({4, 9, "rank 4 waits for rank 9"});
  verdict.add({2, 8, "rank 2 waits for rank 8"});
  EXPECT_EQ(verdict.believed(4).text, "rank 2 waits for rank 8");
}

TEST(Verdict, WhereAllWaitForEachOtherOnesOwnWillDo) {
  Verdict verdict;
  verdict.add({0, 1, "rank 0 waits for rank 1"});
  verdict.add({1, 0, "rank 1 waits for rank 0"});
  EXPECT_EQ(verdict.believed(1).text, "rank 1 waits for rank 0");
  EXPECT_EQ(verdict.believed(5).text, "rank 0 waits for rank 1");
}

TEST(Verdict, TheFirstWordOfARankCounts) {
  Verdict verdict;
  EXPECT_FALSE(verdict.has_any());
  verdict.add({0, 1, "first"});
  verdict.add({0, 2, "second"});
  EXPECT_TRUE(verdict.has_report_of(0));
  EXPECT_EQ(verdict.believed(0).text, "first");
}

TEST(Verdict, AllHaveTimeToSpeak) {
  Verdict verdict;
  EXPECT_FALSE(verdict.is_due());
  verdict.add({0, 1, "rank 0 waits for rank 1"});
  EXPECT_FALSE(verdict.is_due());
  while (!verdict.is_due()) std::this_thread::yield();
}

}  // namespace
}  // namespace tutti::internal
