// The second call with a cached plan allocates nothing and makes no system call, through the whole library, with a core
// per rank.
#include <gtest/gtest.h>

#include "job.h"

namespace tutti_test {
namespace {

TEST(Steady, RepeatedCallsAllocateNothingAndMakeNoSystemCall) {
  Job job(2, TUTTI_TEST_STEADY_WORKER, {});
  for (int rank = 0; rank < 2; ++rank) {
    const auto ended = job.wait(rank, Seconds(60));
    ASSERT_TRUE(ended) << job.output(rank);
    if (ended->exit_code == 77) GTEST_SKIP() << "there is no core for each of 2 ranks here";
    ASSERT_EQ(ended->exit_code, 0) << job.output(rank);
    EXPECT_NE(job.output(rank).find("allocations 0 syscalls 0 "), std::string::npos) << job.output(rank);
  }
}

}  // namespace
}  // namespace tutti_test
