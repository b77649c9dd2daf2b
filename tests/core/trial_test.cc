// Who tries whether packets come through between nodes, and what follows from what they have heard.
#include "src/core/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool all_are_joined(int, int) { return true; }

Hearing hearing(uint32_t paths, uint32_t heard) {
  return {.paths = paths,
          .tried = paths,
          .heard = heard,
          .trouble = heard == paths ? "" : "no packet came through",
          .untried = ""};
}

TEST(Trial, TheLowestRanksOfTwoNodesTryForThem) {
  const std::vector<int> node_of{0, 0, 1, 1, 2};
  EXPECT_THAT(delegates(node_of, all_are_joined), ElementsAre(Delegates{0, 2}, Delegates{0, 4}, Delegates{2, 4}));
  // Rank 0 has no device.
  EXPECT_THAT(delegates(node_of, [](int one, int) { return one != 0; }),
              ElementsAre(Delegates{1, 2}, Delegates{1, 4}, Delegates{2, 4}));
  EXPECT_THAT(delegates(node_of, [](int, int) { return false; }), IsEmpty());
  EXPECT_THAT(delegates(std::vector<int>{0, 0, 0}, all_are_joined), IsEmpty()) << "nobody asks himself";
}

TEST(Trial, PacketsMustComeThroughBothWays) {
  const Trial fine = trial_of(hearing(1, 1), hearing(1, 1));
  EXPECT_FALSE(fine.is_broken);
  EXPECT_EQ(fine.why + fine.silent, "");
  EXPECT_TRUE(trial_of(hearing(1, 1), hearing(1, 0)).is_broken);
  EXPECT_TRUE(trial_of(hearing(1, 0), hearing(1, 1)).is_broken);
  EXPECT_EQ(trial_of(hearing(1, 1), hearing(1, 0)).why, "no packet came through");
  EXPECT_EQ(trial_of(hearing(1, 0), hearing(1, 0)).why, "no packet came through; nor did one the other way");
  EXPECT_TRUE(trial_of(hearing(3, 1), hearing(3, 2)).is_broken) << "each rail carries one way only";
}

TEST(Trial, OneRailOfSeveralIsEnough) {
  const Trial trial = trial_of(hearing(3, 2), hearing(3, 3));
  EXPECT_FALSE(trial.is_broken);
  EXPECT_EQ(trial.why, "");
  EXPECT_EQ(trial.silent, "no packet came through");
}

TEST(Trial, WhatWasNotTriedIsNotBrokenAndNotProven) {
  const Hearing untried{.paths = 1, .tried = 0, .heard = 0, .trouble = "", .untried = "rank 1's rxe0:1 has no queue"};
  const Trial trial = trial_of(untried, untried);
  EXPECT_FALSE(trial.is_broken);
  EXPECT_THAT(trial.why, HasSubstr("by addresses alone"));
  EXPECT_THAT(trial.why, HasSubstr("rank 1's rxe0:1 has no queue"));
  EXPECT_THAT(trial_of({}, {}).why, HasSubstr("by addresses alone")) << "nobody has said anything";
  // One rail was tried, and is silent; the other could not be.
  Hearing half = hearing(1, 0);
  half.paths = 3;
  EXPECT_FALSE(trial_of(half, half).is_broken);
  EXPECT_THAT(trial_of(half, half).why, HasSubstr("by addresses alone"));
  EXPECT_NE(trial_of(half, half).silent, "");
}

TEST(Trial, WhatWasHeardGoesThroughTheStore) {
  Hearings own;
  own[3] = hearing(3, 1);
  own[70'000] = {.paths = 1, .tried = 0, .heard = 0, .trouble = "", .untried = "\"why\"\n\xff"};
  EXPECT_TRUE(misses_any(own));
  auto sent = decode_hearings(encode(own));
  ASSERT_TRUE(sent.ok()) << sent.status().message();
  EXPECT_EQ(sent->at(3), own[3]);
  EXPECT_EQ(sent->at(70'000).paths, 1U);
  EXPECT_TRUE(decode_hearings(encode({}))->empty());
  own[3] = hearing(3, 3);
  EXPECT_FALSE(misses_any(own));
}

TEST(Trial, ManyTroublesLoseTheirWordsNotWhatTheyAre) {
  Hearings own;
  for (int rank = 0; rank < 1000; ++rank) {
    own[rank] = hearing(1, 0);
    own[rank].trouble = std::string(1000, 'x');
  }
  const std::string text = encode(own);
  EXPECT_LT(text.size(), 300'000U);
  auto sent = decode_hearings(text);
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->size(), own.size());
  EXPECT_EQ(sent->at(0).trouble, own[0].trouble);
  EXPECT_EQ(sent->at(999).trouble, "no packet came through");
}

TEST(Trial, RefusesWhatIsNotOfItsForm) {
  for (const char* text : {"", "[", "{}", "7", "[7]", "[[1,1,1,1,\"\"]]", "[[1,1,1,-1,\"\",\"\"]]",
                           "[[1,1,1,1,\"\",\"\",0]]", "[[1,1,1,1,2,\"\"]]"})
    EXPECT_EQ(decode_hearings(text).status().code(), Code::mismatch) << text;
}

}  // namespace
}  // namespace tutti::internal
