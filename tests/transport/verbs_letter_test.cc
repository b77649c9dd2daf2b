// The letters by which queue pairs are connected: what is written is read, and damage is refused.
#include <gtest/gtest.h>

#include "transport/verbs/letter.h"
#include "transport/verbs/wire.h"

namespace tutti::internal::verbs {
namespace {

Letter hello() {
  Letter letter;
  letter.kind = Letter::Kind::hello;
  letter.to_nonce = 0x0123456789abcdef;
  letter.from_nonce = 42;
  letter.credits = 64;
  Letter::Line line;
  line.path.own_port = 1;
  line.path.peer_port = 2;
  line.path.own_gid = 3;
  line.path.peer_gid = -1;
  line.path.peer_gid_raw[15] = 7;
  line.path.is_global = true;
  line.path.peer_lid = 0xbeef;
  line.path.mtu = 5;
  line.pair_number = 0xffffff;
  letter.lines = {line, line};
  letter.text = "why";
  return letter;
}

TEST(Letter, IsReadAsItWasWritten) {
  auto read = Letter::decode(hello().encode());
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->kind, Letter::Kind::hello);
  EXPECT_EQ(read->to_nonce, hello().to_nonce);
  EXPECT_EQ(read->from_nonce, 42u);
  EXPECT_EQ(read->credits, 64u);
  ASSERT_EQ(read->lines.size(), 2u);
  for (const Letter::Line& line : read->lines) {
    EXPECT_EQ(line.path, hello().lines[0].path);
    EXPECT_EQ(line.pair_number, 0xffffffu);
  }
  EXPECT_EQ(read->text, "why");
}

TEST(Letter, CutAnywhereBeforeItsTextIsRefused) {
  const std::string bytes = hello().encode();
  for (size_t length = 0; length < bytes.size() - hello().text.size(); ++length)
    EXPECT_FALSE(Letter::decode(std::string_view(bytes).substr(0, length))) << length;
}

TEST(Letter, OfAnotherKindOrWithMoreLinesThanThereArePortsIsRefused) {
  Letter letter = hello();
  letter.kind = static_cast<Letter::Kind>(0);
  EXPECT_FALSE(Letter::decode(letter.encode()));
  letter.kind = static_cast<Letter::Kind>(5);
  EXPECT_FALSE(Letter::decode(letter.encode()));
  letter = hello();
  letter.lines.resize(kMaxPorts + 1);
  EXPECT_FALSE(Letter::decode(letter.encode()));
}

TEST(Letter, WhoseWriterGivesNoBuffersOrTooManyIsRefused) {
  for (const auto kind : {Letter::Kind::hello, Letter::Kind::welcome})
    for (const uint32_t credits : {0u, (1u << 16) + 1, UINT32_MAX}) {
      Letter letter = hello();
      letter.kind = kind;
      letter.credits = credits;
      EXPECT_FALSE(Letter::decode(letter.encode())) << credits;
    }
  Letter refusal;
  refusal.kind = Letter::Kind::refuse;
  EXPECT_TRUE(Letter::decode(refusal.encode())) << "it gives none";
}

TEST(Letter, SaysNothingThatATerminalWouldObey) {
  Letter letter = hello();
  letter.kind = Letter::Kind::refuse;
  letter.text = "red \x1b[31m\n\xff";
  EXPECT_EQ(Letter::decode(letter.encode())->text, "red ?[31m??");
}

TEST(Letter, TooMuchTextIsCutByTheWriterAndRefusedByTheReader) {
  Letter letter = hello();
  letter.text.assign(5000, 'x');
  EXPECT_TRUE(Letter::decode(letter.encode()));
  EXPECT_FALSE(Letter::decode(letter.encode() + "y"));
}

TEST(Immediate, HoldsAllThatItCan) {
  for (const uint32_t index : {0u, 1u, Immediate::kMaxIndex})
    for (const uint32_t generation : {0u, 1u, Immediate::kGenerations - 1})
      for (const uint32_t stripes : {1u, 2u, static_cast<uint32_t>(kMaxPorts), 16u}) {
        const Immediate read = Immediate::unpack(Immediate{index, generation, stripes}.pack());
        EXPECT_EQ(read.index, index);
        EXPECT_EQ(read.generation, generation);
        EXPECT_EQ(read.stripes, stripes);
      }
}

}  // namespace
}  // namespace tutti::internal::verbs
