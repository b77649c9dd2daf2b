// Ranks that are bound: each knows its place, and trees follow the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <nlohmann/json.hpp>

#include "world.h"

namespace tutti_test {
namespace {

// Ranks are dealt to the first two processors in turn; the file says that these are of two packages.
class Placement : public ::testing::Test {
 protected:
  void SetUp() override {
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    if (!CPU_ISSET(0, &mine) || !CPU_ISSET(1, &mine)) GTEST_SKIP() << "needs the processors 0 and 1";
  }

  static void run(int size, const std::function<void(tutti_group*, int)>& body, const std::string& algorithm) {
    const std::string store = fresh_store();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(rank % 2, &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        tutti_group* world =
            join(store, rank, size,
                 {"TUTTI_TOPOLOGY_FILE=" TUTTI_MACHINES "/one_core_each.xml", "TUTTI_ALGORITHM=" + algorithm});
        if (!world) return;
        body(world, rank);
        EXPECT_TUTTI_OK(tutti_group_free(world));
      });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(Placement, IsDescribed) {
  run(
      3,
      [](tutti_group* world, int rank) {
        std::string text(65536, '\0');
        size_t needed = 0;
        ASSERT_TUTTI_OK(tutti_describe(world, text.data(), text.size(), &needed));
        const auto world_json = nlohmann::json::parse(text.c_str());
        EXPECT_EQ(world_json["nodes"], 1);
        EXPECT_EQ(world_json["place"]["cpus"], std::to_string(rank % 2));
        EXPECT_EQ(world_json["place"]["package"], rank % 2);
        EXPECT_EQ(world_json["place"]["core"], rank % 2);
        EXPECT_EQ(world_json["machine"]["package_count"], 2);
      },
      "all_reduce:ring");
}

// One after the other, 1e8 + 1 - 1e8 + 1 is 1 in float32; with neighbours first, ranks 0, 2, 1, 3, it is 2.
TEST_F(Placement, NeighboursAreAddedFirstAndAlikeEverywhere) {
  run(
      4,
      [](tutti_group* world, int rank) {
        const float values[] = {1e8F, 1, -1e8F, 1};
        float sum = -1;
        ASSERT_TUTTI_OK(tutti_all_reduce(world, &values[rank], &sum, 1, TUTTI_FLOAT32, TUTTI_SUM, nullptr));
        EXPECT_EQ(sum, 2);
      },
      "all_reduce:one_shot");
}

TEST_F(Placement, EveryRootAndTreeIsRight) {
  for (const char* shape : {"knomial", "chain", "linear"}) {
    SCOPED_TRACE(shape);
    run(
        5,
        [](tutti_group* world, int rank) {
          for (int root = 0; root < 5; ++root) {
            int value = rank == root ? 100 + root : -1, sum = -1;
            ASSERT_TUTTI_OK(tutti_broadcast(world, &value, 1, TUTTI_INT32, root, nullptr));
            EXPECT_EQ(value, 100 + root);
            ASSERT_TUTTI_OK(tutti_reduce(world, &rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, root, nullptr));
            if (rank == root) {
              EXPECT_EQ(sum, 10);
            }
          }
          std::vector<int> all(5, -1);
          ASSERT_TUTTI_OK(tutti_all_gather(world, &rank, all.data(), 1, TUTTI_INT32, nullptr));
          EXPECT_THAT(all, ::testing::ElementsAre(0, 1, 2, 3, 4)) << "blocks stay in the ranks' order";
          EXPECT_TUTTI_OK(tutti_barrier(world, nullptr));
        },
        std::string("broadcast:") + shape + ",reduce:" + shape);
  }
}

}  // namespace
}  // namespace tutti_test
