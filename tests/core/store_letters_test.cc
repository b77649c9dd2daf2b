// Letters from rank to rank through the store: who gets them, when they wake their reader, and what becomes of those
// that nobody reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store_world.h"
#include "tests/free_port.h"

namespace tutti::internal {
namespace {

using testing::HasSubstr;

void expect_letter(const Event& event, int from, const std::string& text) {
  EXPECT_EQ(event.kind, Event::Kind::letter);
  EXPECT_EQ(event.rank, from);
  EXPECT_EQ(event.text, text);
}

TEST(Letters, ReachTheRankThatTheyNameAndNoOther) {
  auto world = joined_world("letters", 3);
  ASSERT_EQ(world.size(), 3u);
  EXPECT_TRUE(world[1]->send_letter(2, "queue pair 17").ok());
  expect_letter(world[2].next_event(), 1, "queue pair 17");
  EXPECT_TRUE(world[0]->send_letter(2, "").ok());
  expect_letter(world[2].next_event(), 0, "");
  EXPECT_TRUE(world[2]->send_letter(0, std::string(kMaxLetterBytes, '\0')).ok());
  expect_letter(world[0].next_event(), 2, std::string(kMaxLetterBytes, '\0'));
  for (auto& rank : world) EXPECT_TRUE(rank.is_quiet());
  leave_all(world);
}

TEST(Letters, ThatAreTooLongOrForNobodyAreRefused) {
  auto world = joined_world("refused letters", 2);
  ASSERT_EQ(world.size(), 2u);
  for (int from : {0, 1}) {
    const Status too_long = world[from]->send_letter(1 - from, std::string(kMaxLetterBytes + 1, 'x'));
    EXPECT_EQ(too_long.code(), Code::internal);
    EXPECT_THAT(too_long.message(), HasSubstr("4097 bytes: allowed are 4096"));
    for (int nobody : {-1, 2}) {
      const Status lost = world[from]->send_letter(nobody, "x");
      EXPECT_EQ(lost.code(), Code::internal);
      EXPECT_THAT(lost.message(), HasSubstr("a letter to rank " + std::to_string(nobody) + " in a world of 2"));
    }
  }
  for (auto& rank : world) EXPECT_TRUE(rank.is_quiet());
  leave_all(world);
}

// The answer and the letter may come in one piece, which leaves nothing in the socket to wake for.
TEST(Letters, BehindAnAnswerWakeWhoeverPolls) {
  constexpr int kSize = 3;
  for (int round = 0; round < 100; ++round) {
    const auto hear_all = [](TestRank& rank, const std::string& text) {
      for (int i = 0; i < kSize - 1; ++i) EXPECT_EQ(rank.next_event().text, text);
    };
    const auto tell_all = [](Session& session, const std::string& text) {
      for (int to = 0; to < kSize; ++to) {
        if (to == session.rank()) continue;
        EXPECT_TRUE(session.send_letter(to, text).ok());
      }
    };
    auto results = join_all(kSize, [&](int rank) -> SessionResult {
      auto session = Session::join(options(memory_rendezvous("behind", rank, kSize)), patience());
      if (!session) return session;
      TestRank self(std::move(*session));
      tell_all(*self, "in");
      hear_all(self, "in");
      EXPECT_TRUE(self->exchange("x", "y", patience()).ok());
      tell_all(*self, "exchanged");
      hear_all(self, "exchanged");
      EXPECT_TRUE(self->exchange("all have heard", "", patience()).ok());
      const Status left = self->leave(patience());
      return left.ok() ? Status(Code::aborted, "done") : left;
    });
    for (auto& result : results) ASSERT_EQ(result.status().message(), "done") << "round " << round;
  }
}

TEST(Letters, ToWhoeverIsGoneAreLost) {
  auto world = joined_world("letters to the dead", 4);
  ASSERT_EQ(world.size(), 4u);
  EXPECT_TRUE(world[2]->leave(patience()).ok());
  world[3].vanish();
  for (int rank : {0, 1}) {
    EXPECT_THAT((std::vector<int>{world[rank].next_event().rank, world[rank].next_event().rank}),
                testing::UnorderedElementsAre(2, 3));
    for (int gone : {2, 3}) EXPECT_TRUE(world[rank]->send_letter(gone, "too late").ok());
  }
  EXPECT_TRUE(world[0].is_quiet());
  EXPECT_TRUE(world[1]->send_letter(0, "still here").ok());
  expect_letter(world[0].next_event(), 1, "still here");
  world.pop_back();
  world.pop_back();
  leave_all(world);
}

TEST(Letters, ToAndFromARankThatHasFailedAreLost) {
  auto world = joined_world("letters of the dead", 3);
  ASSERT_EQ(world.size(), 3u);
  world[0]->report_failed(2, "its memory is gone");
  EXPECT_EQ(world[1].next_event().kind, Event::Kind::peer_failed);
  EXPECT_TRUE(world[2]->send_letter(1, "I am well").ok());
  EXPECT_TRUE(world[1]->send_letter(2, "good to hear").ok());
  for (auto& rank : world) EXPECT_TRUE(rank.is_quiet());
}

// What a session refuses to send, the store refuses to pass on.
TEST(Letters, ThatNoRankSendsEndTheirSender) {
  Message to_nobody, too_long;
  to_nobody.type = too_long.type = Message::Type::letter;
  to_nobody.rank = 2;
  too_long.rank = 0;
  too_long.body = std::string(kMaxLetterBytes + 1, 'x');
  for (const Message& letter : {to_nobody, too_long}) {
    const uint16_t port = tutti_test::free_port();
    std::optional<Attempt> bad;
    auto results = join_all(2, [&](int rank) -> SessionResult {
      if (rank == 0) return Session::join(options(address_rendezvous("127.0.0.1", port, 0, 2)), patience());
      Message join;
      join.type = Message::Type::join;
      join.rank = 1;
      join.count = 2;
      join.name = "1.0";
      do {
        bad = attempt(numeric_address("127.0.0.1", port), {"", "test"}, join, patience());
      } while (bad->kind == Attempt::Kind::again);
      return Status(Code::aborted, "");
    });
    ASSERT_EQ(bad->kind, Attempt::Kind::reached) << bad->text;
    ASSERT_TRUE(results[0].ok()) << results[0].status().message();
    const Frame frame = encode(letter);
    ASSERT_EQ(send(bad->reached->socket.fd(), frame->data(), frame->size(), MSG_NOSIGNAL), ssize_t(frame->size()));
    const Event event = TestRank(std::move(*results[0])).next_event();
    EXPECT_EQ(event.kind, Event::Kind::peer_failed);
    EXPECT_EQ(event.rank, 1);
    EXPECT_THAT(event.text, HasSubstr("what no rank sends"));
  }
}

// More than the store keeps for one, and than lies in sockets.
TEST(Letters, WithoutEndToARankThatDoesNotReadEndIt) {
  auto world = joined_world("flood", 3);
  ASSERT_EQ(world.size(), 3u);
  const std::string letter(kMaxLetterBytes, 'x');
  for (size_t bytes = 0; bytes < 2 * kMaxNewsBytes; bytes += letter.size())
    EXPECT_TRUE(world[0]->send_letter(2, letter).ok());
  for (int rank : {0, 1}) {
    const Event event = world[rank].next_event();
    EXPECT_EQ(event.kind, Event::Kind::peer_failed);
    EXPECT_EQ(event.rank, 2);
    EXPECT_THAT(event.text, HasSubstr("it does not read: more than 67108864 bytes wait for it"));
  }
  EXPECT_TRUE(world[0]->send_letter(1, "go on").ok());
  expect_letter(world[1].next_event(), 0, "go on");
  world.pop_back();
  leave_all(world);
}

}  // namespace
}  // namespace tutti::internal
