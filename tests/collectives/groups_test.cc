// Groups of groups: who is in them, that they do not disturb each other, and that their numbers never run out.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "world.h"

namespace tutti_test {
namespace {

// The sum of what every rank of the group puts in, by all_reduce.
int64_t sum_over(tutti_group* group, int64_t value) {
  int64_t sum = -1;
  EXPECT_TUTTI_OK(tutti_all_reduce(group, &value, &sum, 1, TUTTI_INT64, TUTTI_SUM, nullptr));
  return sum;
}

TEST(Groups, SplitByParityAsTheReadmeShows) {
  run_world(5, [](tutti_group* world, int rank) {
    tutti_group* part = nullptr;
    ASSERT_TUTTI_OK(tutti_split(world, rank % 2, rank, &part));
    EXPECT_EQ(tutti_group_size(part), rank % 2 ? 2 : 3);
    EXPECT_EQ(tutti_group_rank(part), rank / 2);
    EXPECT_EQ(tutti_group_world_rank(part, 1), rank % 2 ? 3 : 2);
    EXPECT_EQ(sum_over(part, rank), rank % 2 ? 1 + 3 : 0 + 2 + 4);
    EXPECT_TUTTI_OK(tutti_group_free(part));
  });
}

TEST(Groups, KeysOrderAndEqualKeysKeepTheOldOrder) {
  run_world(4, [](tutti_group* world, int rank) {
    tutti_group *reversed = nullptr, *same = nullptr;
    ASSERT_TUTTI_OK(tutti_split(world, 0, -rank, &reversed));
    ASSERT_TUTTI_OK(tutti_split(world, 0, 7, &same));
    EXPECT_EQ(tutti_group_rank(reversed), 3 - rank);
    EXPECT_EQ(tutti_group_rank(same), rank);
    EXPECT_TUTTI_OK(tutti_group_free(reversed));
    EXPECT_TUTTI_OK(tutti_group_free(same));
  });
}

TEST(Groups, SubgroupTakesItsOrderFromTheList) {
  run_world(4, [](tutti_group* world, int rank) {
    const std::vector<int> list{3, 1};
    tutti_group* pair = nullptr;
    ASSERT_TUTTI_OK(tutti_subgroup(world, list.data(), list.size(), &pair));
    if (rank % 2 == 0) {
      EXPECT_EQ(pair, nullptr);
      return;
    }
    EXPECT_EQ(tutti_group_rank(pair), rank == 3 ? 0 : 1);
    int32_t value = rank;
    EXPECT_TUTTI_OK(tutti_broadcast(pair, &value, 1, TUTTI_INT32, 0, nullptr));
    EXPECT_EQ(value, 3);
    EXPECT_TUTTI_OK(tutti_group_free(pair));
  });
}

TEST(Groups, NoColorIsInNoGroupAndAColorMayHaveOneRank) {
  run_world(3, [](tutti_group* world, int rank) {
    for (int round = 0; round < 100; ++round) {
      tutti_group* part = nullptr;
      ASSERT_TUTTI_OK(tutti_split(world, rank == 0 ? TUTTI_NO_COLOR : rank, 0, &part));
      EXPECT_EQ(part == nullptr, rank == 0);
      if (part) {
        EXPECT_EQ(sum_over(part, rank), rank);
      }
      EXPECT_TUTTI_OK(tutti_group_free(part));
    }
  });
}

TEST(Groups, NestedGroupsAndCopiesKeepTheirMessagesApart) {
  run_world(4, [](tutti_group* world, int rank) {
    tutti_group *copy = nullptr, *half = nullptr, *half_copy = nullptr;
    ASSERT_TUTTI_OK(tutti_dup(world, &copy));
    ASSERT_TUTTI_OK(tutti_split(copy, rank / 2, 0, &half));
    ASSERT_TUTTI_OK(tutti_dup(half, &half_copy));
    // Started in different orders on different ranks, all under way at once.
    std::vector<tutti_group*> groups{world, copy, half, half_copy};
    if (rank % 2) std::ranges::reverse(groups);
    std::vector<int64_t> in(4), out(4);
    std::vector<tutti_work*> works(4);
    for (size_t i = 0; i < 4; ++i) {
      const size_t which = rank % 2 ? 3 - i : i;
      in[which] = static_cast<int64_t>(which) * 100 + rank;
      EXPECT_TUTTI_OK(tutti_all_reduce_async(groups[i], &in[which], &out[which], 1, TUTTI_INT64, TUTTI_SUM, nullptr,
                                             &works[which]));
    }
    for (tutti_work* work : works) {
      EXPECT_TUTTI_OK(tutti_work_wait(work));
      EXPECT_TUTTI_OK(tutti_work_free(work));
    }
    const int half_sum = rank < 2 ? 0 + 1 : 2 + 3;
    EXPECT_EQ(out, (std::vector<int64_t>{6, 400 + 6, 400 + half_sum, 600 + half_sum}));
    for (tutti_group* group : {half_copy, half, copy}) EXPECT_TUTTI_OK(tutti_group_free(group));
  });
}

TEST(Groups, ThousandsAreMadeAndGivenBackAndManyLiveAtOnce) {
  run_world(2, [](tutti_group* world, int rank) {
    for (int i = 0; i < 3000; ++i) {
      tutti_group* copy = nullptr;
      ASSERT_TUTTI_OK(tutti_dup(world, &copy));
      if (i % 100 == 0) {
        EXPECT_EQ(sum_over(copy, rank + i), 2 * i + 1);
      }
      ASSERT_TUTTI_OK(tutti_group_free(copy));
    }
    std::vector<tutti_group*> alive(300);
    for (auto& group : alive) ASSERT_TUTTI_OK(tutti_split(world, 0, -rank, &group));
    for (size_t i = 0; i < alive.size(); ++i) EXPECT_EQ(sum_over(alive[i], static_cast<int64_t>(i)), 2 * int64_t(i));
    for (auto& group : alive) EXPECT_TUTTI_OK(tutti_group_free(group));
  });
}

// Two threads of each rank use two groups in opposite order.
TEST(Groups, ThreadsMayUseDifferentGroupsInAnyOrder) {
  run_world(2, [](tutti_group* world, int rank) {
    tutti_group* groups[2] = {};
    for (auto& group : groups) ASSERT_TUTTI_OK(tutti_dup(world, &group));
    const auto use = [&](int which) {
      for (int i = 0; i < 3000; ++i) ASSERT_EQ(sum_over(groups[which], rank + i), 2 * i + 1);
    };
    std::thread first(use, rank), second(use, 1 - rank);
    first.join();
    second.join();
    for (auto& group : groups) EXPECT_TUTTI_OK(tutti_group_free(group));
  });
}

TEST(Groups, ThreadsMayMakeGroupsAtTheSameTime) {
  run_world(2, [](tutti_group* world, int rank) {
    constexpr int kThreads = 7;
    tutti_group* parents[kThreads] = {};
    for (auto& parent : parents) ASSERT_TUTTI_OK(tutti_dup(world, &parent));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < 20; ++round) {
          tutti_group* made = nullptr;
          ASSERT_TUTTI_OK(tutti_dup(parents[t], &made));
          ASSERT_EQ(sum_over(made, rank + t), 2 * t + 1);
          ASSERT_TUTTI_OK(tutti_group_free(made));
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (auto& parent : parents) EXPECT_TUTTI_OK(tutti_group_free(parent));
  });
}

TEST(Groups, ALateRankIsMissedByTheNameOfTheCall) {
  run_world(2, [](tutti_group* world, int rank) {
    tutti_group *parent = nullptr, *part = nullptr;
    ASSERT_TUTTI_OK(tutti_dup(world, &parent));
    if (rank == 0) {
      EXPECT_TUTTI_OK(tutti_group_set_timeout(parent, 100'000));
      EXPECT_EQ(tutti_split(parent, 0, 0, &part), TUTTI_TIMEOUT);
      EXPECT_NE(std::string(tutti_last_error()).find("split() #0 is not done"), std::string::npos)
          << tutti_last_error();
    }
    EXPECT_TUTTI_OK(tutti_barrier(world, nullptr));
    EXPECT_TUTTI_OK(tutti_group_free(parent));
  });
}

TEST(Groups, DisagreementAboutANewGroupIsAMismatchOnAllRanks) {
  run_world(3, [](tutti_group* world, int rank) {
    tutti_group* group = nullptr;
    const std::vector<int> list = rank == 2 ? std::vector{0, 1} : std::vector{0, 2};
    EXPECT_EQ(tutti_subgroup(world, list.data(), list.size(), &group), TUTTI_MISMATCH);
    EXPECT_NE(std::string(tutti_last_error()).find("rank 0 passed [0, 2] and rank 2 passed [0, 1]"), std::string::npos)
        << tutti_last_error();
    EXPECT_EQ(tutti_barrier(world, nullptr), TUTTI_MISMATCH);
  });
}

// Descriptors, threads and mappings of this process.
size_t held() {
  const auto entries = [](const char* folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  };
  std::ifstream maps("/proc/self/maps");
  const auto mappings = std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  return entries("/proc/self/fd") + entries("/proc/self/task") + static_cast<size_t>(mappings);
}

TEST(Groups, WorldsLeaveNothingBehind) {
  const auto join_and_leave = [] {
    run_world(2, [](tutti_group* world, int rank) {
      void* window = nullptr;
      EXPECT_TUTTI_OK(tutti_alloc(world, 3 << 20, &window));
      EXPECT_EQ(sum_over(world, rank), 1);
    });
  };
  for (int i = 0; i < 10; ++i) join_and_leave();
  const size_t before = held();
  for (int i = 0; i < 100; ++i) join_and_leave();
  EXPECT_LT(held(), before + 20) << "the allocator's own mappings may come and go";
}

TEST(Groups, AWorldOfOneDoesEverythingAlone) {
  run_world(1, [](tutti_group* world, int) {
    tutti_group* copy = nullptr;
    ASSERT_TUTTI_OK(tutti_dup(world, &copy));
    EXPECT_EQ(sum_over(copy, 41), 41);
    EXPECT_TUTTI_OK(tutti_barrier(copy, nullptr));
    EXPECT_TUTTI_OK(tutti_group_free(copy));
  });
}

}  // namespace
}  // namespace tutti_test
