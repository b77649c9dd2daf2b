// What goes over the wire: messages, frames and the handshake, and what is refused before memory is taken.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>

#include "src/core/store/frame_stream.h"
#include "src/core/store/handshake.h"
#include "src/core/store/interfaces.h"
#include "src/core/store/rank_list.h"
#include "src/core/store/roster.h"
#include "src/core/store/socket.h"

namespace tutti::internal {
namespace {

Message example() {
  Message message;
  message.type = Message::Type::value;
  message.rank = 3;
  message.count = -7;
  message.number = 0x0123456789abcdef;
  message.code = Code::mismatch;
  message.failed = 5;
  message.name = "key";
  message.body = std::string("a\0b", 3);
  return message;
}

std::string payload(const Message& message) { return encode(message)->substr(kLengthBytes); }

TEST(Message, ComesBackAsItWas) {
  EXPECT_EQ(decode(payload(example())), example());
  EXPECT_EQ(frame_length(*encode(example())), payload(example()).size());
}

TEST(Message, CutShortOrLengthenedIsNone) {
  const std::string whole = payload(example());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_FALSE(decode(whole.substr(0, i))) << i;
  EXPECT_FALSE(decode(whole + "x"));
}

TEST(Message, TypesCodesAndLengthsOutOfRangeAreNone) {
  std::string bytes = payload(example());
  for (int type : {0, 14, 255}) {
    bytes[0] = static_cast<char>(type);
    EXPECT_FALSE(decode(bytes));
  }
  bytes = payload(example());
  bytes[17] = 9;  // the code
  EXPECT_FALSE(decode(bytes));
  bytes = payload(example());
  bytes[28] = '\xff';  // the highest byte of the name's length
  EXPECT_FALSE(decode(bytes));
  EXPECT_FALSE(frame_length("\xff\xff\xff\xff"));
  EXPECT_FALSE(frame_length(std::string("\x00\x00\x20\x00", 4)));
}

TEST(Message, RandomBytesAreHarmless) {
  std::mt19937 random(20240601);
  std::string bytes = payload(example());
  for (int i = 0; i < 100'000; ++i) {
    std::string changed = bytes;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<char>(random());
    if (const auto message = decode(changed)) {
      EXPECT_EQ(payload(*message), changed);
    }
  }
}

TEST(FrameStream, FramesComeWholeHoweverTheyAreCut) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Socket near(fds[0]), far(fds[1]);
  const std::string frame = *encode(example());
  FrameReader reader;
  for (char byte : frame + frame) {
    EXPECT_FALSE(reader.next());
    ASSERT_EQ(send(near.fd(), &byte, 1, 0), 1);
    ASSERT_TRUE(reader.read_available(far.fd(), kMaxFrameBytes));
    if (reader.bytes().size() == frame.size()) {
      EXPECT_EQ(reader.next(), example());
    }
  }
  EXPECT_TRUE(reader.bytes().empty());
}

TEST(FrameStream, AHugeLengthBreaksItAtOnce) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Socket near(fds[0]), far(fds[1]);
  ASSERT_EQ(send(near.fd(), "\xff\xff\xff\xff", 4, 0), 4);
  FrameReader reader;
  ASSERT_TRUE(reader.read_available(far.fd(), kMaxFrameBytes));
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.is_broken());
}

TEST(FrameStream, NoMoreIsHeldThanAllowed) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Socket near(fds[0]), far(fds[1]);
  ASSERT_EQ(send(near.fd(), std::string(10'000, 'x').data(), 10'000, 0), 10'000);
  FrameReader reader;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reader.read_available(far.fd(), 4096));
  EXPECT_EQ(reader.bytes().size(), 4096u);
}

TEST(FrameStream, WhatTheSocketDoesNotTakeWaits) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Socket near(fds[0]), far(fds[1]);
  FrameWriter writer;
  FrameReader reader;
  Message large = example();
  large.body = std::string(kMaxBodyBytes, 'y');
  for (int i = 0; i < 3; ++i) writer.put(encode(large));
  int received = 0;
  for (int i = 0; i < 10'000 && received < 3; ++i) {
    ASSERT_TRUE(writer.flush(near.fd()));
    ASSERT_TRUE(reader.read_available(far.fd(), kLengthBytes + kMaxFrameBytes));
    if (const auto message = reader.next()) {
      EXPECT_EQ(message->body.size(), kMaxBodyBytes);
      ++received;
    }
  }
  EXPECT_EQ(received, 3);
  EXPECT_TRUE(writer.is_empty());
}

TEST(FrameStream, NewsCountUntilTheyAreWritten) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Socket near(fds[0]), far(fds[1]);
  FrameWriter writer;
  FrameReader reader;
  Message large = example();
  large.body = std::string(kMaxBodyBytes, 'y');
  const Frame frame = encode(large);
  writer.put_news(frame);
  writer.put(frame);
  writer.put_news(frame);
  for (const size_t waiting : {2, 1, 1, 0}) {
    EXPECT_EQ(writer.news_bytes(), waiting * frame->size());
    if (waiting == 0) break;
    while (!reader.next()) {
      ASSERT_TRUE(writer.flush(near.fd()));
      ASSERT_TRUE(reader.read_available(far.fd(), kLengthBytes + kMaxFrameBytes));
    }
  }
  EXPECT_TRUE(writer.is_empty());
}

TEST(Handshake, ProofsDependOnEverything) {
  const Nonce a = fresh_nonce(), b = fresh_nonce();
  const Proof proof = prove({"secret", "label"}, Role::rank, a, b);
  EXPECT_TRUE(is_equal(proof, prove({"secret", "label"}, Role::rank, a, b)));
  EXPECT_FALSE(is_equal(proof, prove({"secreT", "label"}, Role::rank, a, b)));
  EXPECT_FALSE(is_equal(proof, prove({"", "label"}, Role::rank, a, b)));
  EXPECT_FALSE(is_equal(proof, prove({"secret", "labe"}, Role::rank, a, b)));
  EXPECT_FALSE(is_equal(proof, prove({"secret", "label"}, Role::store, a, b)));
  EXPECT_FALSE(is_equal(proof, prove({"secret", "label"}, Role::rank, b, a)));
  EXPECT_FALSE(is_equal(proof, prove({"secret", "label"}, Role::rank, a, a)));
}

// Computed apart, by Python's hmac: a store of another build must come to the same.
TEST(Handshake, AProofIsHmacSha256OfTheDocumentedBytes) {
  const Nonce zero{};
  const Proof proof = prove({"Jefe", "port 29500"}, Role::rank, zero, zero);
  std::string hex;
  for (unsigned char byte : proof) {
    hex.push_back("0123456789abcdef"[byte >> 4]);
    hex.push_back("0123456789abcdef"[byte & 15]);
  }
  EXPECT_EQ(hex, "e4c24a97a30b3a8934a7db4a633c36e887e13226336bf7ddd792ccbc0502de3d");
}

TEST(Handshake, GreetingsAreRecognisedByTheirFirstBytes) {
  const Nonce nonce = fresh_nonce();
  const std::string bytes = greeting(nonce);
  ASSERT_EQ(bytes.size(), kGreetingBytes);
  EXPECT_EQ(parse_greeting(bytes).kind, Greeting::Kind::complete);
  EXPECT_EQ(parse_greeting(bytes).version, kProtocolVersion);
  EXPECT_EQ(parse_greeting(bytes).nonce, nonce);
  for (size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(parse_greeting(bytes.substr(0, i)).kind, Greeting::Kind::partial) << i;
  for (const char* foreign : {"H", "HTTP/1.0 200 OK\r\n", "SSH-2.0", "\xff", "\x89PNG\r\n"})
    EXPECT_EQ(parse_greeting(foreign).kind, Greeting::Kind::foreign) << foreign;
}

TEST(Handshake, SecretsAreFreshAndLong) {
  EXPECT_EQ(fresh_secret().size(), 64u);
  EXPECT_NE(fresh_secret(), fresh_secret());
  EXPECT_NE(fresh_nonce(), fresh_nonce());
}

TEST(RankList, ReadsAsPeopleSay) {
  EXPECT_EQ(list_ranks(std::vector<int>{2}), "rank 2");
  EXPECT_EQ(list_ranks(std::vector<int>{2, 3}), "ranks 2 and 3");
  EXPECT_EQ(list_ranks(std::vector<int>{1, 2, 3}), "ranks 1, 2 and 3");
  std::vector<int> many(4096);
  for (int i = 0; i < 4096; ++i) many[i] = i;
  EXPECT_EQ(list_ranks(many), "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4080 more");
}

TEST(Address, TextAndKind) {
  EXPECT_EQ(numeric_address("127.0.0.1", 80).text(), "127.0.0.1:80");
  EXPECT_EQ(numeric_address("fd00::1", 80).text(), "[fd00::1]:80");
  EXPECT_EQ(numeric_address("::ffff:10.0.0.1", 80).unmapped().text(), "10.0.0.1:80");
  EXPECT_TRUE(numeric_address("::ffff:127.0.0.2", 80).is_loopback());
  EXPECT_TRUE(numeric_address("::1", 80).is_loopback());
  EXPECT_FALSE(numeric_address("128.0.0.1", 80).is_loopback());
  EXPECT_TRUE(numeric_address("169.254.3.1", 80).is_link_local());
  EXPECT_TRUE(numeric_address("fe80::1", 80).is_link_local());
  EXPECT_EQ(numeric_address("name", 80).length, 0u);
  EXPECT_TRUE(is_own_address(numeric_address("127.0.0.1", 0)));
  EXPECT_FALSE(is_own_address(numeric_address("203.0.113.7", 0)));
  const auto chosen = chosen_addresses({});
  ASSERT_TRUE(chosen.ok());
  for (const Address& address : chosen.value()) EXPECT_TRUE(is_own_address(address)) << address.text();
}

bool admits(const std::string& text, const std::string& name, const std::string& address) {
  auto choice = InterfaceChoice::parse(text);
  EXPECT_TRUE(choice.ok()) << choice.status().message();
  return choice.ok() && choice->admits(name, numeric_address(address, 0));
}

TEST(InterfaceChoice, TakesExactNamesNetworksAndAddresses) {
  EXPECT_TRUE(admits("eth1", "eth1", "10.0.0.1"));
  EXPECT_TRUE(admits("eth1", "eth1:0", "10.0.0.1")) << "one more address of it";
  EXPECT_FALSE(admits("eth1", "eth10", "10.0.0.1"));
  EXPECT_FALSE(admits("eth1", "eth1.100", "10.0.0.1"));
  EXPECT_TRUE(admits(" nope0 , eth1 ", "eth1", "10.0.0.1"));
  EXPECT_TRUE(admits("10.0.0.0/8", "any", "10.200.0.1"));
  EXPECT_TRUE(admits("10.9.9.9/8", "any", "10.200.0.1")) << "what stands after the prefix does not count";
  EXPECT_FALSE(admits("10.0.0.0/9", "any", "10.200.0.1"));
  EXPECT_FALSE(admits("0.0.0.0/0", "any", "fd00::1")) << "a network is of one family";
  EXPECT_TRUE(admits("fd00::/8", "any", "fd12::1"));
  EXPECT_TRUE(admits("10.0.0.1", "any", "10.0.0.1"));
  EXPECT_FALSE(admits("10.0.0.1", "any", "10.0.0.2"));
  EXPECT_FALSE(admits("^lo,docker0", "docker0", "172.17.0.1"));
  EXPECT_TRUE(admits("^lo,docker0", "docker01", "172.17.0.1"));
  for (const char* all : {"", "  "}) EXPECT_TRUE(admits(all, "any", "10.0.0.1"));
}

TEST(InterfaceChoice, RefusesWhatIsNone) {
  for (const char* text : {",", "eth0,", "^", "eth0,^lo", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "fd00::/129",
                           "eth0/24", "fd00::zz", "a b", "name_that_is_too_long"}) {
    const auto choice = InterfaceChoice::parse(text);
    EXPECT_EQ(choice.status().code(), Code::invalid_argument) << text;
    EXPECT_NE(choice.status().message().find("it must be a list of interfaces"), std::string::npos) << text;
  }
}

TEST(InterfaceChoice, ThatLeavesNothingSaysWhatThereIs) {
  const auto chosen = chosen_addresses(InterfaceChoice::parse("nope0").value());
  EXPECT_EQ(chosen.status().code(), Code::invalid_argument);
  EXPECT_NE(chosen.status().message().find("TUTTI_INTERFACE=nope0 leaves no interface of this machine; it has "),
            std::string::npos)
      << chosen.status().message();
}

}  // namespace
}  // namespace tutti::internal
