// What tutti-p2p's messages hold: each its own bytes, and any wrong one is found.
#include "p2p_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tutti::perf {
namespace {

using ::testing::StartsWith;

std::vector<std::byte> message(size_t bytes, int rank, uint64_t number) {
  std::vector<std::byte> filled(bytes);
  Content(bytes).fill(rank, number, filled.data());
  return filled;
}

TEST(Content, OfAnySizeIsFoundAsItWasFilled) {
  for (const size_t bytes : {1, 2, 7, 8, 9, 8191, 8192, 8193, 100'000}) {
    std::string first;
    EXPECT_EQ(Content(bytes).count_wrong(1, 3, message(bytes, 1, 3).data(), &first), 0U) << bytes;
    EXPECT_EQ(first, "");
  }
}

TEST(Content, DiffersByRankAndByNumber) {
  EXPECT_NE(message(64, 0, 3), message(64, 1, 3));
  EXPECT_NE(message(64, 0, 3), message(64, 0, 4));
  std::string first;
  EXPECT_GT(Content(64).count_wrong(0, 4, message(64, 0, 3).data(), &first), 50U);
}

TEST(Content, EachWrongByteIsCountedAndTheFirstIsNamed) {
  for (const size_t at : {0, 8191, 8192, 20'000}) {
    std::vector<std::byte> bytes = message(20'001, 0, 9);
    bytes[at] ^= std::byte{1};
    bytes[20'000] ^= std::byte{0x80};
    std::string first;
    EXPECT_EQ(Content(bytes.size()).count_wrong(0, 9, bytes.data(), &first), at == 20'000 ? 1U : 2U);
    EXPECT_THAT(first, StartsWith("message 9 of 20001 bytes from rank 0, byte " + std::to_string(at) + ": 0x"));
  }
}

TEST(Checker, TellsWhatItGaveFromWhatItDidNotAndLeavesNothingForTheNext) {
  constexpr size_t kBytes = 100;
  std::vector<std::byte> slots(256);
  // What rank 0 sends lies where rank 1 receives.
  const Side sender = {nullptr, 0, kBytes, 128, 2, nullptr, slots.data(), 2};
  const Side receiver = {nullptr, 1, kBytes, 128, 2, slots.data(), nullptr, 2};
  Checker giver(sender, 10, -1);
  Checker looker(receiver, 10, -1);
  giver.before_send(0);
  giver.before_send(1);
  looker.after_recv(0);
  looker.after_recv(1);
  EXPECT_EQ(looker.checked(), 2U);
  EXPECT_EQ(looker.wrong(), 0U);
  EXPECT_EQ(looker.fault(), "");
  looker.after_recv(2);
  EXPECT_GT(looker.wrong(), 50U) << "nothing was sent: what was there was wiped out";
  EXPECT_THAT(looker.fault(), StartsWith("message 12 of 100 bytes from rank 0, byte 0: 0x5a"));
}

TEST(Checker, ASpoiledBitIsOneWrongByte) {
  std::vector<std::byte> slot(64);
  const Side sender = {nullptr, 0, 3, 64, 1, nullptr, slot.data(), 1};
  const Side receiver = {nullptr, 1, 3, 64, 1, slot.data(), nullptr, 1};
  Checker(sender, 0, 1).before_send(0);
  Checker looker(receiver, 0, 1);
  looker.after_recv(0);
  EXPECT_EQ(looker.wrong(), 1U);
}

}  // namespace
}  // namespace tutti::perf
