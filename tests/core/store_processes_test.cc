// The store between real processes, really killed and stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/free_port.h"
#include "tests/processes/job.h"

namespace tutti_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kWorker = TUTTI_STORE_WORKER;
const Seconds kLimit(60);

void wait_until_joined(Job& job) {
  for (int rank = 0; rank < job.size(); ++rank)
    ASSERT_TRUE(job.wait_for_output(rank, "joined", kLimit)) << "rank " << rank << ": " << job.output(rank);
}

void expect_exit(Job& job, int rank, int code) {
  const auto ended = job.wait(rank, kLimit);
  ASSERT_TRUE(ended) << "rank " << rank << " hangs: " << job.output(rank);
  EXPECT_EQ(ended->exit_code, code) << "rank " << rank << ": " << job.output(rank);
}

TEST(StoreProcesses, JoinByTheEnvironmentAndLeave) {
  Job job(4, kWorker, {"once"});
  for (int rank = 0; rank < 4; ++rank) {
    expect_exit(job, rank, 0);
    EXPECT_THAT(job.output(rank), AllOf(HasSubstr("joined 127.0.0.1"), HasSubstr("left")));
  }
}

TEST(StoreProcesses, AKilledRankIsToldToAllOthers) {
  for (int victim : {2, 0}) {
    Job job(4, kWorker, {"watch"});
    wait_until_joined(job);
    job.signal(victim, SIGKILL);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      EXPECT_TRUE(job.wait_for_output(rank, "event 0 " + std::to_string(victim) + " its ", kLimit)) << job.output(rank);
      if (victim != 0) {
        EXPECT_THAT(job.output(rank), HasSubstr("(pid " + std::to_string(job.pid(victim)) + ")"));
      }
    }
  }
}

TEST(StoreProcesses, AForkedChildDoesNotHideItsParentsDeath) {
  for (int victim : {1, 0}) {
    Job job(2, kWorker, {"fork"});
    wait_until_joined(job);
    job.signal(victim, SIGKILL);
    const int other = 1 - victim;
    EXPECT_TRUE(job.wait_for_output(other, "event 0 " + std::to_string(victim), Seconds(20))) << job.output(other);
  }
}

// A stopped rank keeps its connection: that is no death. The deadline of the next exchange names it.
TEST(StoreProcesses, AStoppedRankIsMissedByNameAtTheDeadline) {
  Job job(3, kWorker, {"once"}, {"TUTTI_JOIN_TIMEOUT=2"});
  job.signal(2, SIGSTOP);
  for (int rank : {0, 1}) {
    const auto ended = job.wait(rank, kLimit);
    ASSERT_TRUE(ended) << job.output(rank);
    if (ended->exit_code == 0) GTEST_SKIP() << "rank 2 was quicker than the signal";
    EXPECT_THAT(job.output(rank), AllOf(HasSubstr("status timeout"), HasSubstr("rank 2 of 3")));
  }
}

// Rank 0 is there and does not answer: the others do not wait longer than they said.
TEST(StoreProcesses, AStoppedHostIsATimeout) {
  Job job(2, kWorker, {"once"}, {"TUTTI_JOIN_TIMEOUT=2"});
  job.signal(0, SIGSTOP);
  const auto ended = job.wait(1, kLimit);
  ASSERT_TRUE(ended) << job.output(1);
  if (ended->exit_code == 0) GTEST_SKIP() << "rank 0 was quicker than the signal";
  EXPECT_THAT(job.output(1), HasSubstr("status timeout"));
}

TEST(StoreProcesses, SignalsWithoutRestartDisturbNothing) {
  Job job(3, kWorker, {"rounds", "200"});
  for (int rank = 0; rank < 3; ++rank) expect_exit(job, rank, 0);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr int kRuns = 10;  // its processes are slow to start
#else
constexpr int kRuns = 40;
#endif

// The same port, with rank 0 killed in every fifth run: the next one works at once and is never mistaken.
TEST(StoreProcesses, RunsFollowEachOtherOnOnePortThoughRank0IsKilled) {
  const std::string port = "MASTER_PORT=" + std::to_string(free_port());
  for (int run = 0; run < kRuns; ++run) {
    const bool kill = run % 5 == 4;
    Job job(3, kWorker, {kill ? "watch" : "once"}, {port});
    if (kill) {
      wait_until_joined(job);
      job.signal(0, SIGKILL);
    }
    for (int rank = kill ? 1 : 0; rank < 3; ++rank) expect_exit(job, rank, 0);
    if (HasFailure()) FAIL() << "run " << run;
  }
}

TEST(StoreProcesses, ALowSoftLimitOfDescriptorsIsRaised) {
  Job job(24, kWorker, {"once", "20", "256"});
  for (int rank = 0; rank < 24; ++rank) expect_exit(job, rank, 0);
}

TEST(StoreProcesses, ALowHardLimitOfDescriptorsIsNamed) {
  Job job(24, kWorker, {"once", "20", "20"}, {"TUTTI_JOIN_TIMEOUT=1"});
  const auto ended = job.wait(0, kLimit);
  ASSERT_TRUE(ended) << job.output(0);
  EXPECT_THAT(job.output(0), AllOf(HasSubstr("status out_of_resources"), HasSubstr("24 ranks needs"),
                                   HasSubstr("RLIMIT_NOFILE is 20, hard limit 20")));
}

}  // namespace
}  // namespace tutti_test
