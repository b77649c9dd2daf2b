// Which message meets which receive, in whatever order they come, and how far a sender can run ahead.
#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

TEST_P(Conformance, MessagesMeetTheirReceivesInAnyOrder) {
  std::mt19937_64 random = seeded();
  const auto world = connected(2);
  for (const size_t bytes : {8u, 100u, 20'000u})
    for (int round = 0; round < 4; ++round) {
      constexpr size_t kMessages = 200;
      std::vector<std::vector<std::byte>> from(kMessages, std::vector<std::byte>(bytes));
      std::vector<std::vector<std::byte>> to = from;
      std::vector<size_t> sends(kMessages);
      std::iota(sends.begin(), sends.end(), 0u);
      std::vector<size_t> receives = sends;
      std::shuffle(sends.begin(), sends.end(), random);
      std::shuffle(receives.begin(), receives.end(), random);
      std::vector<Ticket> sent(kMessages);
      std::vector<Ticket> received(kMessages);
      size_t s = 0;
      size_t r = 0;
      while (s < kMessages || r < kMessages) {
        if (s < kMessages && (r == kMessages || random() % 2 == 0)) {
          const size_t i = sends[s++];
          fill(from[i], i);
          sent[i] = (*world)[0].send(4, 1, i, from[i].data(), bytes);
        } else {
          const size_t i = receives[r++];
          received[i] = (*world)[1].recv(4, 0, i, to[i].data(), bytes);
        }
        if (random() % 8 == 0) world->poll();
      }
      for (size_t i = 0; i < kMessages; ++i) {
        EXPECT_EQ((*world)[1].wait(received[i]).code, Code::ok);
        EXPECT_EQ((*world)[0].wait(sent[i]).code, Code::ok);
        EXPECT_TRUE(holds(to[i], i)) << "message " << i;
      }
    }
}

TEST_P(Conformance, PeerChannelAndMatchAllCount) {
  const auto world = connected(3);
  std::vector<uint64_t> values;
  std::vector<std::pair<int, Ticket>> sent;
  constexpr std::array<uint64_t, 4> kNumbers{0, 1, uint64_t{1} << 32, ~uint64_t{0}};
  const auto value_of = [](int from, uint64_t channel, uint64_t match) {
    return static_cast<uint64_t>(from) * 1'000'003 + channel * 31 + match * 7;
  };
  values.reserve(64);
  for (const int from : {1, 2})
    for (const uint64_t channel : kNumbers)
      for (const uint64_t match : kNumbers) {
        values.push_back(value_of(from, channel, match));
        sent.emplace_back(from, (*world)[from].send(channel, 0, match, &values.back(), 8));
      }
  for (const uint64_t match : kNumbers)
    for (const int from : {2, 1})
      for (const uint64_t channel : kNumbers) {
        uint64_t found = 0;
        EXPECT_EQ((*world)[0].wait((*world)[0].recv(channel, from, match, &found, 8)).code, Code::ok);
        EXPECT_EQ(found, value_of(from, channel, match)) << from << ' ' << channel << ' ' << match;
      }
  for (const auto& [from, ticket] : sent) EXPECT_EQ((*world)[from].wait(ticket).code, Code::ok);
}

// Both directions of a pair have tags of their own.
TEST_P(Conformance, TheSameTagGoesBothWays) {
  const auto world = connected(2);
  for (const size_t bytes : {8u, 50'000u}) {
    std::array<std::vector<std::byte>, 2> from{std::vector<std::byte>(bytes), std::vector<std::byte>(bytes)};
    auto to = from;
    std::array<Ticket, 2> sent{};
    std::array<Ticket, 2> received{};
    for (const int rank : {0, 1}) {
      const auto r = static_cast<size_t>(rank);
      fill(from[r], r);
      sent[r] = (*world)[rank].send(1, 1 - rank, 5, from[r].data(), bytes);
      received[r] = (*world)[rank].recv(1, 1 - rank, 5, to[r].data(), bytes);
    }
    for (const int rank : {0, 1}) {
      const auto r = static_cast<size_t>(rank);
      EXPECT_EQ((*world)[rank].wait(received[r]).code, Code::ok);
      EXPECT_EQ((*world)[rank].wait(sent[r]).code, Code::ok);
      EXPECT_TRUE(holds(to[r], 1 - r));
    }
  }
}

TEST_P(Conformance, ATagIsUsedAgainAfterCompletion) {
  const auto world = connected(2);
  for (const size_t bytes : {8u, 300u, 30'000u})
    for (uint64_t round = 0; round < 500; ++round) {
      std::vector<std::byte> from(bytes);
      std::vector<std::byte> to(bytes);
      fill(from, round);
      const Ticket sent = (*world)[0].send(1, 1, 77, from.data(), bytes);
      const Ticket received = (*world)[1].recv(1, 0, 77, to.data(), bytes);
      ASSERT_EQ((*world)[1].wait(received).code, Code::ok);
      ASSERT_EQ((*world)[0].wait(sent).code, Code::ok);
      ASSERT_TRUE(holds(to, round)) << "round " << round;
    }
}

TEST_P(Conformance, ManyChannelsAreUsedInTurn) {
  const auto world = connected(2);
  for (uint64_t channel = 0; channel < 2000; ++channel) {
    const uint64_t value = channel * 3;
    uint64_t found = 0;
    const Ticket sent = (*world)[0].send(channel << 40, 1, 1, &value, 8);
    ASSERT_EQ((*world)[1].wait((*world)[1].recv(channel << 40, 0, 1, &found, 8)).code, Code::ok);
    ASSERT_EQ((*world)[0].wait(sent).code, Code::ok);
    ASSERT_EQ(found, value);
  }
}

// A message that nobody has asked for yet cannot stop one that somebody waits for, however many there are.
TEST_P(Conformance, TheLastOfManyUnexpectedMessagesCanBeReceivedFirst) {
  const auto world = connected(2);
  for (const size_t bytes : {16u, 2000u, 40'000u}) {
    constexpr uint64_t kMessages = 3000;
    std::vector<std::byte> from(bytes);
    std::vector<std::byte> to(bytes);
    fill(from, 3);
    std::vector<Ticket> sent;
    for (uint64_t i = 0; i < kMessages; ++i) sent.push_back((*world)[0].send(1, 1, i, from.data(), bytes));
    for (uint64_t i = kMessages; i-- > 0;) {
      ASSERT_EQ((*world)[1].wait((*world)[1].recv(1, 0, i, to.data(), bytes)).code, Code::ok);
      if (i % 500 == 0) {
        ASSERT_TRUE(holds(to, 3));
      }
    }
    for (const Ticket ticket : sent) ASSERT_EQ((*world)[0].wait(ticket).code, Code::ok);
  }
}

TEST_P(Conformance, TenThousandRequestsCanBePostedBeforeAnyPoll) {
  const auto world = connected(2);
  constexpr size_t kMessages = 10'000;
  std::vector<uint64_t> values(kMessages);
  std::vector<uint64_t> found(kMessages);
  std::iota(values.begin(), values.end(), 500u);
  std::vector<Ticket> received;
  std::vector<Ticket> sent;
  for (size_t i = 0; i < kMessages; ++i) received.push_back((*world)[1].recv(1, 0, i, &found[i], 8));
  for (size_t i = 0; i < kMessages; ++i) sent.push_back((*world)[0].send(1, 1, i, &values[i], 8));
  for (size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ((*world)[1].wait(received[i]).code, Code::ok);
    ASSERT_EQ((*world)[0].wait(sent[i]).code, Code::ok);
  }
  EXPECT_EQ(found, values);
}

// Each end sends everything before it receives anything; one of them starts late.
TEST_P(Conformance, BothEndsRunAheadOfEachOtherByThousandsOfMessages) {
  const auto world = connected(2);
  // More than 16 bits can count; the fake network looks through all that is under way, so there it takes minutes.
  const uint64_t messages = std::string_view((*world)[0].transport().name()) == "fake" ? 5'000 : 100'000;
  world->run_threads([messages](Rank& self) {
    const int other = 1 - self.index();
    if (self.index() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::vector<uint64_t> values(messages);
    std::vector<Ticket> sent(messages);
    for (uint64_t i = 0; i < messages; ++i) {
      values[i] = i * 5 + static_cast<uint64_t>(self.index());
      sent[i] = self.send(1, other, i, &values[i], 8);
    }
    for (uint64_t i = 0; i < messages; ++i) {
      uint64_t found = 0;
      ASSERT_EQ(self.wait(self.recv(1, other, i, &found, 8)).code, Code::ok);
      ASSERT_EQ(found, i * 5 + static_cast<uint64_t>(other));
    }
    for (const Ticket ticket : sent) ASSERT_EQ(self.wait(ticket).code, Code::ok);
  });
}

struct Lengths {
  size_t sent;
  size_t wanted;
};

TEST_P(Conformance, LengthsThatDifferAreToldToBothEnds) {
  const auto world = connected(2);
  uint64_t match = 0;
  for (const auto [sent_bytes, wanted] :
       {Lengths{0, 8}, Lengths{8, 0}, Lengths{8, 9}, Lengths{40, 41}, Lengths{41, 40}, Lengths{5000, 4999},
        Lengths{8, 100'000}, Lengths{100'000, 8}, Lengths{100'000, 100'001}, Lengths{2'000'000, 1'000'000}})
    for (const bool early : {false, true}) {
      SCOPED_TRACE(::testing::Message() << sent_bytes << " sent, " << wanted << " wanted, early " << early);
      ++match;
      std::vector<std::byte> from(sent_bytes);
      std::vector<std::byte> to(wanted);
      Ticket received = early ? (*world)[1].recv(1, 0, match, to.data(), wanted) : 0;
      const Ticket sent = (*world)[0].send(1, 1, match, from.data(), sent_bytes);
      if (!early) {
        world->settle();
        received = (*world)[1].recv(1, 0, match, to.data(), wanted);
      }
      const Completion at_receiver = (*world)[1].wait(received);
      EXPECT_EQ(at_receiver.code, Code::mismatch);
      EXPECT_EQ(at_receiver.found_bytes, sent_bytes);
      const Completion at_sender = (*world)[0].wait(sent);
      if (at_sender.code != Code::ok) {  // it may have been complete before
        EXPECT_EQ(at_sender.code, Code::mismatch);
        EXPECT_EQ(at_sender.found_bytes, wanted);
      }
      if (sent_bytes >= 2'000'000) {
        EXPECT_EQ(at_sender.code, Code::mismatch) << "nobody copies so much aside";
      }

      // What comes after it is not affected, in either direction.
      ++match;
      std::vector<std::byte> fine(3000);
      std::vector<std::byte> found(3000);
      for (const int rank : {0, 1}) {
        fill(fine, match + static_cast<uint64_t>(rank));
        const Ticket good = (*world)[rank].send(1, 1 - rank, match, fine.data(), fine.size());
        const Ticket taken = (*world)[1 - rank].recv(1, rank, match, found.data(), found.size());
        EXPECT_EQ((*world)[1 - rank].wait(taken).code, Code::ok);
        EXPECT_EQ((*world)[rank].wait(good).code, Code::ok);
        EXPECT_TRUE(holds(found, match + static_cast<uint64_t>(rank)));
      }
    }
}

// One reader of several has another length: the others get the message.
TEST_P(Conformance, OnlyTheReaderWithAnotherLengthFails) {
  const auto world = connected(4);
  std::vector<std::byte> from(2'000'000);
  fill(from, 1);
  std::vector<std::vector<std::byte>> to(4, std::vector<std::byte>(from.size()));
  to[2].resize(12);
  const std::array<Endpoint, 3> ends{{{1, 5}, {2, 5}, {3, 5}}};
  const Ticket sent = (*world)[0].send(1, ends, from.data(), from.size());
  for (const int reader : {1, 2, 3}) {
    auto& memory = to[static_cast<size_t>(reader)];
    const Completion got = (*world)[reader].wait((*world)[reader].recv(1, 0, 5, memory.data(), memory.size()));
    EXPECT_EQ(got.code, reader == 2 ? Code::mismatch : Code::ok);
    if (reader != 2) {
      EXPECT_TRUE(holds(memory, 1));
    }
  }
  const Completion at_sender = (*world)[0].wait(sent);
  EXPECT_EQ(at_sender.code, Code::mismatch);
  EXPECT_EQ(at_sender.found_bytes, 12u);
}

TEST_P(Conformance, AReductionWithAnOperandOfAnotherLengthIsAMismatch) {
  const auto world = connected(4);
  uint64_t match = 0;
  for (const size_t elements : {4u, 500u, 300'000u})
    for (const int odd : {1, 2, 3})
      for (const bool early : {false, true}) {
        SCOPED_TRACE(::testing::Message() << elements << " elements, rank " << odd << ", early " << early);
        ++match;
        const uint64_t channel = 100 + match;
        std::vector<uint64_t> data(elements + 1);
        std::vector<uint64_t> result(elements);
        const std::array<ReduceOperand, 3> operands{
            {{{1, match}, nullptr}, {{2, match}, nullptr}, {{3, match}, nullptr}}};
        const auto reduce = [&] { return (*world)[0].reduce(channel, operands, result.data(), elements, kDigits); };
        Ticket reduced = early ? reduce() : 0;
        std::array<Ticket, 4> sent{};
        for (const int rank : {1, 2, 3})
          sent[static_cast<size_t>(rank)] =
              (*world)[rank].send(channel, 0, match, data.data(), 8 * (elements + (rank == odd ? 1 : 0)));
        if (!early) {
          world->settle();
          reduced = reduce();
        }
        const Completion got = (*world)[0].wait(reduced);
        EXPECT_EQ(got.code, Code::mismatch);
        EXPECT_EQ(got.found_bytes, 8 * (elements + 1));
        const Completion at_odd = (*world)[odd].wait(sent[static_cast<size_t>(odd)]);
        if (at_odd.code != Code::ok) {
          EXPECT_EQ(at_odd.found_bytes, 8 * elements);
        }
        // What the other two sent may find nobody any more: their owners cancel the channel.
        for (int rank = 0; rank < 4; ++rank) (*world)[rank].cancel(channel);
        uint64_t value = match;
        uint64_t found = 0;
        const Ticket good = (*world)[1].send(2, 0, match, &value, 8);
        EXPECT_EQ((*world)[0].wait((*world)[0].recv(2, 1, match, &found, 8)).code, Code::ok);
        EXPECT_EQ((*world)[1].wait(good).code, Code::ok);
        EXPECT_EQ(found, match);
      }
}

}  // namespace
}  // namespace tutti::internal::conformance
