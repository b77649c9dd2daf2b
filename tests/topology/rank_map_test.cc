// Who sits where.
#include "topology/rank_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

namespace tutti::internal {
namespace {

using ::testing::ElementsAre;

RankPlace on(int node, int package = -1, int numa = -1, int l3 = -1, int core = -1) {
  return {.node = node, .host = "host", .cpus = {}, .package = package, .numa = numa, .l3 = l3, .core = core};
}

TEST(RankMapTest, UnevenAndInterleavedLayouts) {
  const std::vector<RankPlace> places{on(0), on(1), on(0), on(3), on(1), on(0)};
  const RankMap map(places);
  EXPECT_EQ(map.node_count(), 3);
  EXPECT_THAT(map.ranks_of(0), ElementsAre(0, 2, 5));
  EXPECT_THAT(map.ranks_of(1), ElementsAre(1, 4));
  EXPECT_THAT(map.ranks_of(2), ElementsAre(3));
  EXPECT_EQ(map.leader(1), 1);
  EXPECT_EQ(map.local_rank(5), 2);
  EXPECT_EQ(map.node_of(4), 1);
  EXPECT_TRUE(map.share(0, 5, Level::node));
  EXPECT_FALSE(map.share(0, 1, Level::node));
}

TEST(RankMapTest, EqualHostNamesAreNoSameNode) {
  RankPlace one = on(0), other = on(1);
  one.host = other.host = "localhost";
  const std::vector<RankPlace> places{one, other};
  EXPECT_EQ(RankMap(places).node_count(), 2);
}

TEST(RankMapTest, NeighboursAreNear) {
  // Two packages of two L3 domains, ranks dealt around.
  const std::vector<RankPlace> places{on(0, 0, 0, 0, 0), on(0, 1, 1, 2, 4), on(0, 0, 0, 1, 2),
                                      on(0, 1, 1, 3, 6), on(0, 0, 0, 0, 1), on(0, 1, 1, 2, 5)};
  const RankMap map(places);
  EXPECT_THAT(map.near_order(), ElementsAre(0, 4, 2, 1, 5, 3));
  EXPECT_TRUE(map.share(0, 4, Level::l3));
  EXPECT_FALSE(map.share(0, 2, Level::l3));
  EXPECT_TRUE(map.share(0, 2, Level::numa));
  EXPECT_FALSE(map.share(0, 1, Level::package));
}

TEST(RankMapTest, WhatIsUnknownIsNotShared) {
  const std::vector<RankPlace> places{on(0), on(0)};
  const RankMap map(places);
  EXPECT_TRUE(map.share(0, 1, Level::node));
  for (const Level level : {Level::package, Level::numa, Level::l3, Level::core}) EXPECT_FALSE(map.share(0, 1, level));
  EXPECT_THAT(map.near_order(), ElementsAre(0, 1));
}

TEST(RankMapTest, ManyRanksAreEachInOneNode) {
  std::mt19937 random(7);
  std::vector<RankPlace> places;
  for (int rank = 0; rank < 4096; ++rank) places.push_back(on(static_cast<int>(random() % 512), 0, 0, 0, 0));
  const RankMap map(places);
  std::set<int> seen;
  for (int node = 0; node < map.node_count(); ++node)
    for (const int rank : map.ranks_of(node)) {
      EXPECT_EQ(map.node_of(rank), node);
      EXPECT_EQ(map.ranks_of(node)[static_cast<size_t>(map.local_rank(rank))], rank);
      EXPECT_EQ(places[static_cast<size_t>(rank)].node, places[static_cast<size_t>(map.leader(node))].node);
      seen.insert(rank);
    }
  EXPECT_EQ(seen.size(), 4096u);
}

TEST(RankPlaceTest, OfAThreadIsWhatItsProcessorsShare) {
  const auto machine = Machine::read({MachineSource::Kind::synthetic, "package:2 [numa] l3:2 core:2 pu:2"});
  ASSERT_TRUE(machine.ok());
  const auto expect = [&](const CpuList& cpus, int package, int numa, int l3, int core) {
    const RankPlace place = place_on(machine.value(), cpus);
    EXPECT_EQ(place.package, package) << to_string(cpus);
    EXPECT_EQ(place.numa, numa) << to_string(cpus);
    EXPECT_EQ(place.l3, l3) << to_string(cpus);
    EXPECT_EQ(place.core, core) << to_string(cpus);
  };
  expect({11}, 1, 1, 2, 5);
  expect({8, 9, 10, 11}, 1, 1, 2, -1);
  expect({0, 7}, 0, 0, -1, -1);
  expect({0, 15}, -1, -1, -1, -1);
  expect({}, -1, -1, -1, -1);
}

TEST(RankPlaceTest, ComesBackAsItWasAndRubbishDoesNot) {
  RankPlace place = on(7, 1, 2, 3, 4);
  place.cpus = {0, 1, 2, 8, 9000};
  const std::string bytes = place.encode();
  const auto back = RankPlace::decode(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().node, place.node);
  EXPECT_EQ(back.value().host, place.host);
  EXPECT_EQ(back.value().cpus, place.cpus);
  EXPECT_EQ(back.value().core, 4);
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(RankPlace::decode(bytes.substr(0, cut)).ok());
  EXPECT_FALSE(RankPlace::decode(bytes + "x").ok());
}

}  // namespace
}  // namespace tutti::internal
