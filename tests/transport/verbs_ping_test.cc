// What travels in a ping: it comes as it was sent, and whatever else arrives is nobody's ping.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "transport/verbs/ping_message.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

constexpr size_t kPacket = 1024;

std::vector<std::byte> packet(const PingMessage& message, size_t bytes = kPacket) {
  std::vector<std::byte> room(bytes, std::byte{0xee});
  message.encode(room);
  return room;
}
PingMessage example() { return {.to_nonce = 0x0123456789abcdef, .rank = 70'000, .path = 3, .has_heard = true}; }

TEST(PingMessage, ComesAsItWasSent) {
  EXPECT_EQ(PingMessage::decode(packet(example())), example());
  EXPECT_EQ(PingMessage::decode(packet(example(), PingMessage::kBytes)), example()) << "nothing behind it";
  const PingMessage other{.to_nonce = 1, .rank = 0, .path = kMaxPorts - 1, .has_heard = false};
  EXPECT_EQ(PingMessage::decode(packet(other)), other);
}

TEST(PingMessage, IsNothingWhereItIsCut) {
  const std::vector<std::byte> whole = packet(example());
  for (size_t bytes = 0; bytes < PingMessage::kBytes; ++bytes)
    EXPECT_FALSE(PingMessage::decode(std::span(whole).first(bytes))) << bytes;
}

TEST(PingMessage, IsNothingWhereAFieldIsOutOfItsBounds) {
  const auto is_refused = [](size_t at, int value) {
    std::vector<std::byte> bytes = packet(example());
    bytes[at] = static_cast<std::byte>(value);
    return !PingMessage::decode(bytes);
  };
  EXPECT_TRUE(is_refused(0, 2)) << "the version";
  EXPECT_TRUE(is_refused(3, 0)) << "the magic number";
  EXPECT_TRUE(is_refused(7, 0x80)) << "no rank";
  EXPECT_TRUE(is_refused(16, kMaxPorts)) << "no path";
  EXPECT_TRUE(is_refused(17, 2)) << "neither heard nor not";
  EXPECT_TRUE(is_refused(18, 1)) << "what is not used yet";
  EXPECT_TRUE(is_refused(kPacket - 1, 1)) << "what is behind it";
  EXPECT_FALSE(is_refused(8, 0)) << "any nonce may be right";
}

TEST(PingMessage, AnythingThatIsReadWouldHaveBeenSentSo) {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  const auto seed = given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  SCOPED_TRACE("TUTTI_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = packet(example(), 256);
    for (auto changes = 1 + random() % 3; changes > 0; --changes)
      bytes[random() % PingMessage::kBytes] = static_cast<std::byte>(random());
    if (const auto message = PingMessage::decode(bytes)) {
      ASSERT_EQ(packet(*message, 256), bytes);
    }
  }
}

}  // namespace
}  // namespace tutti::internal::verbs
