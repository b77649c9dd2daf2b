// Joining, exchanging, hearing of the others, and leaving: ranks as threads on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "store_world.h"

namespace tutti::internal {
namespace {

using testing::HasSubstr;

TEST(Session, RanksJoinExchangeValuesAndLeave) {
  const int size = 4;
  const auto run_rank = [&](int rank) -> SessionResult {
    auto session = Session::join(options(memory_rendezvous("usage", rank, size)), patience());
    if (!session) return session;
    auto values = (*session)->exchange("address", "of rank " + std::to_string(rank), patience());
    EXPECT_TRUE(values.ok()) << values.status().message();
    if (values) {
      EXPECT_EQ(*values, (std::vector<std::string>{"of rank 0", "of rank 1", "of rank 2", "of rank 3"}));
    }
    const Status left = (*session)->leave(patience());
    EXPECT_TRUE(left.ok()) << left.message();
    return session;
  };
  for (auto& session : join_all(size, run_rank)) EXPECT_TRUE(session.ok()) << session.status().message();
}

TEST(Session, AWorldOfOneHasNoSockets) {
  auto session = Session::join(options(Rendezvous()), patience());
  ASSERT_TRUE(session.ok());
  EXPECT_EQ((*session)->rank(), 0);
  EXPECT_EQ((*session)->size(), 1);
  EXPECT_EQ((*session)->fd(), -1);
  auto values = (*session)->exchange("a", "own", patience());
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(*values, std::vector<std::string>{"own"});
  (*session)->report_failed(0, "");
  (*session)->abort(1, Status(Code::aborted, ""));
  EXPECT_TRUE((*session)->send_letter(0, "").ok());
  EXPECT_TRUE((*session)->leave(patience()).ok());
}

TEST(Session, ValuesOfAMebibyteArriveWhole) {
  auto world = joined_world("large", 3);
  ASSERT_EQ(world.size(), 3u);
  std::vector<std::thread> threads;
  for (auto& session : world)
    threads.emplace_back([&] {
      auto values = session->exchange("large", std::string(kMaxBodyBytes, char('a' + session->rank())), patience());
      ASSERT_TRUE(values.ok()) << values.status().message();
      for (int rank = 0; rank < 3; ++rank) EXPECT_EQ((*values)[rank], std::string(kMaxBodyBytes, char('a' + rank)));
    });
  for (auto& thread : threads) thread.join();
  auto too_large = world[1]->exchange("large", std::string(kMaxBodyBytes + 1, 'x'), patience());
  EXPECT_EQ(too_large.status().code(), Code::invalid_argument);
  EXPECT_THAT(too_large.status().message(), HasSubstr("1048577 bytes: allowed are 1048576"));
  leave_all(world);
}

TEST(Session, ManyRanksJoinAndHaveTheSameJobNumber) {
  auto world = joined_world("many", 48);
  ASSERT_EQ(world.size(), 48u);
  for (auto& session : world) EXPECT_EQ(session->job(), world[0]->job());
  auto other = joined_world("other", 2);
  EXPECT_NE(other[0]->job(), world[0]->job());
  leave_all(other);
  leave_all(world);
}

TEST(Session, ADestroyedSessionIsADeathToAllOthers) {
  for (int victim : {1, 0}) {
    auto world = joined_world("death", 4);
    ASSERT_EQ(world.size(), 4u);
    world[victim].vanish();
    for (auto& session : world) {
      if (!session) continue;
      const Event event = session.next_event();
      EXPECT_EQ(event.kind, Event::Kind::peer_failed);
      EXPECT_EQ(event.rank, victim);
      EXPECT_NE(event.text, "");
    }
  }
}

TEST(Session, AGoodbyeIsNoDeath) {
  auto world = joined_world("goodbye", 3);
  ASSERT_EQ(world.size(), 3u);
  EXPECT_TRUE(world[2]->leave(patience()).ok());
  for (int rank : {0, 1}) {
    const Event event = world[rank].next_event();
    EXPECT_EQ(event.kind, Event::Kind::left);
    EXPECT_EQ(event.rank, 2);
  }
  world.pop_back();
  leave_all(world);
}

TEST(Session, Rank0SaysGoodbyeAndServesOnUntilTheOthersHaveLeft) {
  auto world = joined_world("rank 0 leaves", 3);
  ASSERT_EQ(world.size(), 3u);
  std::atomic<bool> has_left{false};
  std::thread host([&] {
    EXPECT_TRUE(world[0]->leave(patience()).ok());
    has_left = true;
  });
  EXPECT_EQ(world[1].next_event().kind, Event::Kind::left);
  EXPECT_EQ(world[2].next_event().kind, Event::Kind::left);
  world[1]->abort(7, Status(Code::mismatch, "still served"));
  EXPECT_EQ(world[2].next_event().text, "still served");
  EXPECT_FALSE(has_left);
  EXPECT_TRUE(world[1]->leave(patience()).ok());
  EXPECT_TRUE(world[2]->leave(patience()).ok());
  host.join();
}

TEST(Session, Rank0WaitsNoLongerThanItsDeadlineAndTellsTheOthers) {
  auto world = joined_world("impatient", 2);
  ASSERT_EQ(world.size(), 2u);
  const Status left = world[0]->leave(Deadline::after_us(100'000));
  EXPECT_EQ(left.code(), Code::timeout);
  EXPECT_THAT(left.message(), HasSubstr("rank 1 had not left"));
  EXPECT_EQ(world[1].next_event().kind, Event::Kind::left);
  const Event lost = world[1].next_event();
  EXPECT_EQ(lost.kind, Event::Kind::store_lost);
  EXPECT_EQ(lost.rank, 0);
  EXPECT_THAT(lost.text, HasSubstr("waited no longer"));
  EXPECT_TRUE(world[1].is_quiet());  // no descriptor that stays readable for ever
  EXPECT_TRUE(world[1]->leave(patience()).ok());
}

TEST(Session, ReportsAndAbortsReachEveryOtherRankOnce) {
  for (int reporter : {0, 2}) {
    auto world = joined_world("reports", 4);
    ASSERT_EQ(world.size(), 4u);
    world[reporter]->abort(uint64_t{5} << 40, Status(Code::timeout, "too slow"));
    world[reporter]->report_failed(1, "its memory is gone");
    world[reporter]->report_failed(1, "its memory is gone");
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == reporter) continue;
      const Event aborted = world[rank].next_event();
      EXPECT_EQ(aborted.kind, Event::Kind::aborted);
      EXPECT_EQ(aborted.rank, reporter);
      EXPECT_EQ(aborted.channel, uint64_t{5} << 40);
      EXPECT_EQ(aborted.code, Code::timeout);
      EXPECT_EQ(aborted.text, "too slow");
      if (rank == 1) continue;  // who is accused is told by the transports
      const Event failed = world[rank].next_event();
      EXPECT_EQ(failed.kind, Event::Kind::peer_failed);
      EXPECT_EQ(failed.rank, 1);
      EXPECT_THAT(failed.text, HasSubstr("its memory is gone"));
      EXPECT_THAT(failed.text, HasSubstr("noticed by rank " + std::to_string(reporter)));
    }
    for (auto& rank : world) EXPECT_TRUE(rank.is_quiet());
  }
}

TEST(Session, AnAbortBecauseOfAFailureNamesTheRankThatFailed) {
  auto world = joined_world("aborts", 3);
  ASSERT_EQ(world.size(), 3u);
  world[1]->abort(9, Status::peer_failed(2, "rank 2 failed: it has left"));
  const Event aborted = world[0].next_event();
  EXPECT_EQ(aborted.rank, 1) << "who gave up";
  EXPECT_EQ(aborted.code, Code::peer_failed);
  EXPECT_EQ(aborted.failed_rank, 2) << "whose failure it was";
}

TEST(Session, AnExchangeEndsAtOnceWhenARankDiesOrLeaves) {
  for (bool orderly : {false, true}) {
    auto world = joined_world("exchange and death", 3);
    ASSERT_EQ(world.size(), 3u);
    std::vector<std::thread> threads;
    for (int rank : {0, 1})
      threads.emplace_back([&, rank] {
        auto values = world[rank]->exchange("addresses", "x", patience());
        EXPECT_EQ(values.status().code(), Code::peer_failed) << values.status().message();
        EXPECT_EQ(values.status().failed_rank(), 2);
        EXPECT_THAT(values.status().message(), HasSubstr("rank " + std::to_string(rank) + " ("));
        // What arrived meanwhile is there for whoever polls.
        const Event event = world[rank].next_event();
        EXPECT_EQ(event.rank, 2);
        // And later exchanges do not wait for it either.
        EXPECT_EQ(world[rank]->exchange("more", "x", patience()).status().code(), Code::peer_failed);
      });
    const Status left = orderly ? world[2]->leave(patience()) : Status();
    EXPECT_TRUE(left.ok()) << left.message();
    world[2].vanish();
    for (auto& thread : threads) thread.join();
  }
}

TEST(Session, AnExchangeThatOneRankMissesNamesItOnEveryOther) {
  auto world = joined_world("missed exchange", 4);
  ASSERT_EQ(world.size(), 4u);
  std::vector<std::thread> threads;
  for (int rank : {0, 1, 3})
    threads.emplace_back([&, rank] {
      // Only one is impatient: it speaks for all.
      auto values = world[rank]->exchange("key", "x", rank == 1 ? Deadline::after_us(200'000) : patience());
      EXPECT_EQ(values.status().code(), Code::timeout) << values.status().message();
      EXPECT_THAT(values.status().message(), HasSubstr("rank 2 of 4 did not come to the exchange of \"key\""));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(world[2]->exchange("key", "late", patience()).status().code(), Code::timeout);
  leave_all(world);
}

TEST(Session, SendsFromManyThreadsArriveWhole) {
  auto world = joined_world("threads", 2);
  ASSERT_EQ(world.size(), 2u);
  constexpr int kThreads = 4, kEach = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) world[1]->abort(t, Status(Code::aborted, std::string(100 + i, 'z')));
    });
  std::vector<int> seen(kThreads);
  int total = 0;
  for (const Deadline end = patience(); total < kThreads * kEach && !end.passed();) {
    if (!wait_for(world[0]->fd(), POLLIN, end)) continue;
    world[0]->serve([&](const Event& event) {
      EXPECT_EQ(event.text, std::string(100 + seen[event.channel]++, 'z'));
      ++total;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(total, kThreads * kEach);
  leave_all(world);
}

}  // namespace
}  // namespace tutti::internal
