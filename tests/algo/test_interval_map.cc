// IntervalMap against an array with one value for each byte.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "algo/interval_map.h"

namespace tutti::internal {
namespace {

TEST(IntervalMap, AssignsAndVisitsRuns) {
  IntervalMap<int> map;
  map.assign(10, 20, 1);
  map.assign(15, 30, 2);
  std::vector<std::array<uint64_t, 3>> runs;
  map.visit(0, 25, [&](uint64_t begin, uint64_t end, int value) {
    runs.push_back({begin, end, static_cast<uint64_t>(value)});
  });
  EXPECT_EQ(runs, (std::vector<std::array<uint64_t, 3>>{{0, 10, 0}, {10, 15, 1}, {15, 25, 2}}));
}

TEST(IntervalMap, JoinsEqualNeighbours) {
  IntervalMap<int> map;
  map.assign(10, 20, 1);
  map.assign(20, 30, 1);
  map.assign(5, 10, 1);
  EXPECT_EQ(map.run_count(), 3U);  // before, [5,30), after
  map.assign(5, 30, 0);
  EXPECT_EQ(map.run_count(), 1U);
}

TEST(IntervalMap, AgreesWithOneValueForEachByte) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    constexpr uint64_t kBytes = 64;
    IntervalMap<int> map;
    std::vector<int> bytes(kBytes, 0);
    for (int change = 0; change < 40; ++change) {
      const uint64_t begin = random() % kBytes, end = begin + random() % (kBytes - begin + 1);
      const int value = static_cast<int>(random() % 4);
      if (random() % 2 == 0) {
        map.assign(begin, end, value);
        for (uint64_t at = begin; at < end; ++at) bytes[at] = value;
      } else {
        map.update(begin, end, [&](int& old) { old = old * 2 + value; });
        for (uint64_t at = begin; at < end; ++at) bytes[at] = bytes[at] * 2 + value;
      }
      uint64_t at = 0;
      map.visit(0, kBytes, [&](uint64_t run_begin, uint64_t run_end, int run_value) {
        ASSERT_EQ(run_begin, at);
        for (; at < run_end; ++at) ASSERT_EQ(bytes[at], run_value);
      });
      ASSERT_EQ(at, kBytes);
    }
  }
}

}  // namespace
}  // namespace tutti::internal
