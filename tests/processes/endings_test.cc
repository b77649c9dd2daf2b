// Programs that end in ways of their own, and ranks that share too few cores.
#include <gtest/gtest.h>
#include <sched.h>
#include <tutti/tutti.h>
#include <unistd.h>

#include <cstdlib>

#include "job.h"

namespace tutti_test {
namespace {

const std::string kWorker = TUTTI_TEST_WORKER;
const Seconds kLimit(60);

class Ending : public ::testing::TestWithParam<const char*> {};

TEST_P(Ending, WithoutLeavingIsTheProgramsOwn) {
  for (int round = 0; round < 10; ++round) {
    // What such programs do not give back is their own affair.
    Job job(3, kWorker, {"end", GetParam()}, {"ASAN_OPTIONS=detect_leaks=0"});
    for (int rank = 0; rank < job.size(); ++rank) {
      const auto ended = job.wait(rank, kLimit);
      ASSERT_TRUE(ended) << "rank " << rank << " hangs: " << job.output(rank);
      EXPECT_EQ(ended->exit_code, 5) << "rank " << rank << ", signal " << ended->signal << ": " << job.output(rank);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Ways, Ending,
                         ::testing::Values("main_returns", "a_thread_exits", "a_static_leaves", "the_middle"),
                         [](const auto& way) { return std::string(way.param); });

TEST(Limits, OfDescriptorsMayBeLoweredToNothing) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs descriptors itself to look at an object";
#endif
  Job job(3, kWorker, {"no_descriptors"});
  for (int rank = 0; rank < job.size(); ++rank) {
    const auto ended = job.wait(rank, kLimit);
    ASSERT_TRUE(ended) << "rank " << rank << " hangs: " << job.output(rank);
    EXPECT_EQ(ended->exit_code, 0) << job.output(rank);
  }
}

TEST(Limits, OfThreadsAreNamedAndChangeNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Job job(1, kWorker, {"no_threads"});
  const auto ended = job.wait(0, kLimit);
  ASSERT_TRUE(ended) << job.output(0);
  EXPECT_EQ(ended->exit_code, TUTTI_OUT_OF_RESOURCES) << job.output(0);
  EXPECT_NE(job.output(0).find("thread"), std::string::npos) << job.output(0);
  EXPECT_NE(job.output(0).find("signals as before"), std::string::npos) << job.output(0);
}

TEST(Limits, OfFileSizesAreNamed) {
  for (const char* bytes : {"0", "1000", "1000000"}) {
    Job job(2, kWorker, {"small_files", bytes});
    const auto ended = job.wait(0, kLimit);
    ASSERT_TRUE(ended) << job.output(0);
    EXPECT_EQ(ended->exit_code, TUTTI_OUT_OF_RESOURCES) << "signal " << ended->signal << ": " << job.output(0);
    EXPECT_NE(job.output(0).find("RLIMIT_FSIZE"), std::string::npos) << job.output(0);
  }
}

TEST(Waiting, ForALateRankTakesHardlyAnyProcessor) {
  Job job(2, kWorker, {"wait", "3"});
  const auto ended = job.wait(1, kLimit);
  ASSERT_TRUE(ended);
  const std::string output = job.output(1);
  const size_t at = output.find("took ");
  ASSERT_NE(at, std::string::npos) << output;
  EXPECT_LT(std::atof(output.c_str() + at + 5), 1.0) << "of 3 seconds";
}

// Keeps this process, and those that it starts, on the first core that it may use.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// Ranks that spin would take a slice of the scheduler for each turn: a thousand operations would outlast the limit.
TEST(Waiting, ManyRanksOnOneCoreGiveItToEachOther) {
  const OneCore here;
  for (const int ranks : {4, 16}) {
    Job job(ranks, kWorker, {"repeat", "1000"});
    for (int rank = 0; rank < ranks; ++rank) {
      const auto ended = job.wait(rank, kLimit);
      ASSERT_TRUE(ended) << job.output(rank);
      EXPECT_EQ(ended->exit_code, 0) << job.output(rank);
    }
  }
}

}  // namespace
}  // namespace tutti_test
