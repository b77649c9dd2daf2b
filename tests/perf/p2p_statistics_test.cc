// The figures of tutti-p2p, on times whose answers are known.
#include "p2p_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "p2p_times.h"

namespace tutti::perf {
namespace {

// When pings left whose round trips took so long.
std::vector<double> starts_of(const std::vector<double>& round_trips_us) {
  std::vector<double> starts = {1000};
  for (const double time : round_trips_us) starts.push_back(starts.back() + time);
  return starts;
}

TEST(Latency, IsHalfOfARoundTripAndLeavesTheTwoSlowestOut) {
  // One way: 1 2 3 4 5 6, and 50 and 500 that do not count.
  const Latency latency = latency_of(starts_of({6, 1000, 2, 12, 4, 100, 10, 8}));
  EXPECT_DOUBLE_EQ(latency.min, 1);
  EXPECT_DOUBLE_EQ(latency.max, 50) << "the first that is left out, as perftest has it";
  EXPECT_DOUBLE_EQ(latency.slowest, 500);
  EXPECT_DOUBLE_EQ(latency.typical, 3.5) << "an even number: between the two in the middle";
  EXPECT_DOUBLE_EQ(latency.average, 3.5);
  EXPECT_DOUBLE_EQ(latency.deviation, std::sqrt(17.5 / 6));
  EXPECT_DOUBLE_EQ(latency.p99, 50) << "ceil(0.99 * 6) = 6, counted from 0";
  EXPECT_DOUBLE_EQ(latency.p99_9, 50);
}

TEST(Latency, OfAnOddNumberTheTypicalIsTheOneInTheMiddle) {
  EXPECT_DOUBLE_EQ(latency_of(starts_of({2, 4, 18, 200, 200})).typical, 2);
}

TEST(Latency, PercentilesOfAThousandAreThoseOfPerftest) {
  std::vector<double> round_trips;
  for (int i = 1; i <= 1002; ++i) round_trips.push_back(2 * i);
  const Latency latency = latency_of(starts_of(round_trips));
  EXPECT_DOUBLE_EQ(latency.p99, 991) << "the sample at place 990, counted from 0";
  EXPECT_DOUBLE_EQ(latency.p99_9, 1000);
  EXPECT_DOUBLE_EQ(latency.max, 1001);
  EXPECT_DOUBLE_EQ(latency.slowest, 1002);
  EXPECT_DOUBLE_EQ(latency.average, 500.5);
}

TEST(Latency, TheFewestMessagesGiveFigures) {
  const Latency latency = latency_of(starts_of({2, 4, 6, 8}));
  EXPECT_DOUBLE_EQ(latency.min, 1);
  EXPECT_DOUBLE_EQ(latency.average, 1.5);
  EXPECT_DOUBLE_EQ(latency.max, 3);
  EXPECT_DOUBLE_EQ(latency.p99_9, 3);
  EXPECT_DOUBLE_EQ(latency.deviation, 0.5);
}

TEST(Bandwidth, TheBestRunIsFromItsFirstPostToItsLastCompletion) {
  // One under way at a time: the third takes 2, the others 10.
  EXPECT_DOUBLE_EQ(best_rate(std::vector<double>{0, 10, 20, 22}, std::vector<double>{10, 20, 22, 32}), 0.5);
  // All posted at once, done one after the other: no run is better than the whole.
  EXPECT_DOUBLE_EQ(best_rate(std::vector<double>{0, 0, 0, 0}, std::vector<double>{4, 6, 8, 10}), 0.4);
  EXPECT_DOUBLE_EQ(best_rate(std::vector<double>{5}, std::vector<double>{9}), 0.25);
  // Two under way: messages 2 and 3, posted at 10 and 11, done by 14.
  EXPECT_DOUBLE_EQ(best_rate(std::vector<double>{0, 0, 10, 11, 13}, std::vector<double>{10, 11, 13, 14, 30}), 0.5);
}

TEST(Bandwidth, TheBestRunIsTheBestOfAllRuns) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    const size_t depth = 1 + random() % 8;
    std::vector<double> posted(1 + random() % 60, 0.0);
    std::vector<double> completed;
    double now = 1;
    for (size_t i = 0; i < posted.size(); ++i) {
      if (i >= depth) posted[i] = completed[i - depth];
      completed.push_back(now += 0.125 * static_cast<double>(1 + random() % 40));
    }
    double best = 0;
    for (size_t i = 0; i < posted.size(); ++i)
      for (size_t j = i; j < posted.size(); ++j)
        best = std::max(best, static_cast<double>(j - i + 1) / (completed[j] - posted[i]));
    ASSERT_DOUBLE_EQ(best_rate(posted, completed), best);
  }
}

TEST(Bandwidth, TimesWithinTheClocksTickGiveAFiniteRate) {
  EXPECT_DOUBLE_EQ(best_rate(std::vector<double>{7, 7}, std::vector<double>{7, 7}), 2000);
}

TEST(Bandwidth, AReceiverThatLeavesTheBarrierLateSeesNoFasterRun) {
  constexpr size_t kMessages = 8;
  StreamTimes times(kMessages, kMessages);
  times.ready();
  // Meanwhile all messages come into the receives that stand.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  times.started();
  for (size_t i = 0; i < kMessages; ++i) times.after_recv(i);
  EXPECT_LE(times.peak_rate(), kMessages / 5000.0);
}

TEST(Bandwidth, MegabytesArePowersOfTwo) {
  EXPECT_DOUBLE_EQ(mebibytes_per_second(1, 1 << 20), 1e6);
  EXPECT_DOUBLE_EQ(mebibytes_per_second(2, 1), 2e6 / 1048576);
}

}  // namespace
}  // namespace tutti::perf
