// Which ranks share a node.
#include <gtest/gtest.h>

#include "algo/layout.h"

namespace tutti::internal {
namespace {

TEST(Layout, NumbersNodesByTheirLowestRank) {
  const Layout layout(std::vector{7, 3, 7, 3, 7});
  EXPECT_EQ(layout.rank_count(), 5);
  ASSERT_EQ(layout.node_count(), 2);
  EXPECT_EQ(layout.ranks_of(0), (std::vector{0, 2, 4}));
  EXPECT_EQ(layout.ranks_of(1), (std::vector{1, 3}));
  EXPECT_EQ(layout.node_of(3), 1);
  EXPECT_EQ(layout.local_rank(3), 1);
  EXPECT_EQ(layout.fewest(), 2);
  EXPECT_EQ(layout.most(), 3);
}

TEST(Layout, TwoLevelsNeedSeveralNodesAndSeveralRanksOnOne) {
  EXPECT_FALSE(Layout().has_two_levels());
  EXPECT_FALSE(Layout(std::vector{0}).has_two_levels());
  EXPECT_FALSE(Layout(std::vector{5, 5, 5}).has_two_levels());
  EXPECT_FALSE(Layout(std::vector{0, 1, 2}).has_two_levels());
  EXPECT_TRUE(Layout(std::vector{0, 1, 1}).has_two_levels());
}

}  // namespace
}  // namespace tutti::internal
