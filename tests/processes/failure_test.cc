// What the others see when a rank dies, stops or leaves: an error that names it, in time, on every rank. Real
// processes, really killed.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "job.h"
#include "tutti/tutti.h"

namespace tutti_test {
namespace {

const std::string kWorker = TUTTI_TEST_WORKER;
const Seconds kStart(30);  // a loaded machine takes its time to start processes

void wait_until_started(Job& job) {
  for (int rank = 0; rank < job.size(); ++rank)
    ASSERT_TRUE(job.wait_for_output(rank, "started", kStart)) << "rank " << rank << ": " << job.output(rank);
}

// Every rank but `gone` ends with `status` and says `text`, within `limit` of the mark.
void expect_all_others(Job& job, int gone, tutti_status status, const std::string& text, Seconds limit) {
  for (int rank = 0; rank < job.size(); ++rank) {
    if (rank == gone) continue;
    const auto ended = job.wait(rank, limit + Seconds(20));
    ASSERT_TRUE(ended) << "rank " << rank << " hangs: " << job.output(rank);
    EXPECT_EQ(ended->exit_code, status) << "rank " << rank << ": " << job.output(rank);
    EXPECT_NE(job.output(rank).find(text), std::string::npos) << "rank " << rank << ": " << job.output(rank);
    EXPECT_LT(ended->after.count(), limit.count()) << "rank " << rank;
  }
}

TEST(Failure, KilledInTheMiddleOfALargeAllReduce) {
  for (int victim : {2, 0}) {
    Job job(4, kWorker, {"loop", "all_reduce", std::to_string(16 << 20)});
    wait_until_started(job);
    job.mark();
    job.signal(victim, SIGKILL);
    expect_all_others(job, victim, TUTTI_PEER_FAILED, "peer_failed rank " + std::to_string(victim), Seconds(2));
  }
}

TEST(Failure, StoppedRankIsATimeoutThatNamesIt) {
  Job job(3, kWorker, {"loop", "all_reduce", "64", "1000"});
  wait_until_started(job);
  job.mark();
  job.signal(1, SIGSTOP);
  expect_all_others(job, 1, TUTTI_TIMEOUT, "waits for rank 1", Seconds(5));
  job.signal(1, SIGCONT);  // the woken rank learns that the others have given up
  const auto woken = job.wait(1, Seconds(20));
  ASSERT_TRUE(woken) << job.output(1);
  EXPECT_TRUE(woken->exit_code == TUTTI_TIMEOUT || woken->exit_code == TUTTI_PEER_FAILED) << job.output(1);
}

TEST(Failure, FirstContactWithAStoppedRankTakesNoLongerThanTheOperationMay) {
  Job job(3, kWorker, {"first_contact", "1"}, {"TUTTI_TIMEOUT=60"});
  for (int rank = 0; rank < job.size(); ++rank)
    ASSERT_TRUE(job.wait_for_output(rank, "joined", kStart)) << job.output(rank);
  job.mark();
  job.signal(1, SIGSTOP);
  expect_all_others(job, 1, TUTTI_TIMEOUT, "rank 1", Seconds(10));
}

TEST(Failure, LeavingInOrderWhileOthersWaitIsAnErrorToo) {
  for (int who : {2, 0}) {
    Job job(3, kWorker, {"leave_early", std::to_string(who)});
    expect_all_others(job, who, TUTTI_PEER_FAILED, "peer_failed rank " + std::to_string(who), kStart);
  }
}

TEST(Failure, ExitWithoutLeavingIsADeath) {
  Job job(3, kWorker, {"exit_early", "1"});
  expect_all_others(job, 1, TUTTI_PEER_FAILED, "peer_failed rank 1", kStart);
}

TEST(Failure, AForkedChildCannotUseTheHandleAndDoesNotHideItsParentsDeath) {
  Job job(2, kWorker, {"fork_child"});
  wait_until_started(job);
  ASSERT_TRUE(job.wait_for_output(1, "child", kStart)) << job.output(1);
  EXPECT_NE(job.output(1).find("child unsupported"), std::string::npos) << job.output(1);
  job.mark();
  job.signal(1, SIGKILL);
  expect_all_others(job, 1, TUTTI_PEER_FAILED, "peer_failed rank 1", Seconds(2));
}

TEST(Failure, SignalsWithoutRestartDisturbNothing) {
  Job job(3, kWorker, {"signals", "300"});
  for (int rank = 0; rank < 3; ++rank) {
    const auto ended = job.wait(rank, Seconds(120));
    ASSERT_TRUE(ended) << job.output(rank);
    EXPECT_EQ(ended->exit_code, 0) << job.output(rank);
  }
}

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.insert(entry.path().filename());
  return names;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr int kRandomKills = 20;  // its processes are slow to start
#else
constexpr int kRandomKills = 200;
#endif

TEST(Failure, RandomKillsLeaveNothingBehind) {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  const auto seed = static_cast<uint32_t>(given ? std::strtoul(given, nullptr, 10) : std::random_device{}());
  std::printf("seed %u (TUTTI_TEST_SEED)\n", seed);
  std::mt19937 random(seed);
  const std::vector<std::string> operations{"barrier",        "broadcast", "reduce",     "all_reduce", "scatter",
                                            "reduce_scatter", "gather",    "all_gather", "all_to_all"};
  const std::vector<int> sizes{4, 400, 4096, 65536, 1 << 20};
  const auto files_before = shared_memory_files();
  for (int round = 0; round < kRandomKills; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 3), victim = static_cast<int>(random() % ranks);
    const std::string operation = operations[random() % operations.size()];
    const std::string bytes = std::to_string(sizes[random() % sizes.size()]);
    SCOPED_TRACE("round " + std::to_string(round) + ": " + operation + " of " + bytes + " bytes, rank " +
                 std::to_string(victim) + " of " + std::to_string(ranks));
    Job job(ranks, kWorker, {"loop", operation, bytes, "20000"});
    ASSERT_TRUE(job.wait_for_output(victim, "joined", kStart)) << job.output(victim);
    // Some die while the others still join, some in the middle of their work.
    const auto delay = std::chrono::microseconds(random() % 20'000);
    const auto until = std::chrono::steady_clock::now() + delay;
    while (std::chrono::steady_clock::now() < until) job.wait(victim, Seconds(0.001));
    job.mark();
    job.signal(victim, SIGKILL);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto ended = job.wait(rank, Seconds(15));
      ASSERT_TRUE(ended) << "rank " << rank << " hangs: " << job.output(rank);
      if (rank != victim) {
        EXPECT_EQ(ended->exit_code, TUTTI_PEER_FAILED) << "rank " << rank << ": " << job.output(rank);
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(shared_memory_files(), files_before);
}

}  // namespace
}  // namespace tutti_test
