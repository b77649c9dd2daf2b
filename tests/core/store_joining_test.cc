// What can go wrong while ranks join, and what each of them is told: ranks as threads on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "store_stranger.h"
#include "store_world.h"

namespace tutti::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kAppointed = kSecond / 2;  // deadline of worlds that cannot come together

SessionResult join_at(uint16_t port, int rank, int size, Deadline deadline = patience(),
                      const std::string& secret = "") {
  return Session::join(options(address_rendezvous("127.0.0.1", port, rank, size, secret)), deadline);
}

void expect_joined(std::vector<SessionResult>& results) {
  for (auto& result : results) EXPECT_TRUE(result.ok()) << result.status().message();
}

TEST(Joining, ByAddressAndPort) {
  const uint16_t port = free_port();
  auto results = join_all(3, [&](int rank) { return join_at(port, rank, 3); });
  expect_joined(results);
}

TEST(Joining, AWorldOfAnotherSizeIsAMismatchOnEveryRank) {
  const uint16_t port = free_port();
  auto results = join_all(4, [&](int rank) { return join_at(port, rank, rank == 0 ? 3 : 4); });
  for (auto& result : results) {
    EXPECT_EQ(result.status().code(), Code::mismatch);
    EXPECT_THAT(result.status().message(),
                AllOf(HasSubstr("of 3"), HasSubstr("of 4"), HasSubstr("rank 0 at 127.0.0.1:")));
  }
}

TEST(Joining, AnotherVersionIsAMismatchOnEveryRank) {
  const uint16_t port = free_port();
  auto results = join_all(3, [&](int rank) {
    return Session::join(options(address_rendezvous("127.0.0.1", port, rank, 3), rank == 2 ? "2.0" : "1.0"),
                         patience());
  });
  for (auto& result : results) {
    EXPECT_EQ(result.status().code(), Code::mismatch);
    EXPECT_THAT(result.status().message(),
                AllOf(HasSubstr("runs tutti"), HasSubstr("1.0"), HasSubstr("2.0"), HasSubstr("rank 2 at")));
  }
}

TEST(Joining, OtherSettingsAreAMismatchOnEveryRank) {
  const uint16_t port = free_port();
  auto results = join_all(3, [&](int rank) {
    return Session::join(
        options(address_rendezvous("127.0.0.1", port, rank, 3), "1.0", rank == 1 ? "TUTTI_CHECK=1" : "TUTTI_CHECK=0"),
        patience());
  });
  for (auto& result : results) {
    EXPECT_EQ(result.status().code(), Code::mismatch);
    EXPECT_THAT(result.status().message(),
                AllOf(HasSubstr("\"TUTTI_CHECK=1\""), HasSubstr("\"TUTTI_CHECK=0\""), HasSubstr("rank 1 at")));
  }
}

// Ranks 0, 1, 0, 1 of 4, as when local ranks are taken for ranks of the world.
TEST(Joining, ARankThatJoinsTwiceIsNamedToEveryRank) {
  const uint16_t port = free_port();
  auto results = join_all(4, [&](int i) { return join_at(port, i % 2, 4); });
  for (auto& result : results) {
    EXPECT_EQ(result.status().code(), Code::mismatch) << result.status().message();
    EXPECT_THAT(result.status().message(), AllOf(HasSubstr("joined twice: from 127.0.0.1:"), HasSubstr("(pid ")));
  }
}

TEST(Joining, ALateCopyOfARankIsRefusedAndDisturbsNobody) {
  const uint16_t port = free_port();
  auto world = join_all(3, [&](int rank) { return join_at(port, rank, 3); });
  expect_joined(world);
  auto copy = join_at(port, 2, 3);
  EXPECT_EQ(copy.status().code(), Code::mismatch);
  EXPECT_THAT(copy.status().message(), AllOf(HasSubstr("rank 2 joined twice"), HasSubstr("world there is complete")));
  for (auto& session : world) EXPECT_EQ(wait_for((*session)->fd(), POLLIN, Deadline::after_us(50'000)), 0);
}

TEST(Joining, AtTheDeadlineEveryRankIsToldWhoIsMissing) {
  const uint16_t port = free_port();
  auto results = join_all(3, [&](int rank) { return join_at(port, rank, 5, Deadline::after_us(kAppointed)); });
  for (auto& result : results) {
    EXPECT_EQ(result.status().code(), Code::timeout) << result.status().message();
    EXPECT_THAT(result.status().message(), HasSubstr("ranks 3 and 4 of 5 have not joined within 0."));
  }
}

TEST(Joining, OneImpatientRankSpeaksForAll) {
  const uint16_t port = free_port();
  auto results = join_all(
      3, [&](int rank) { return join_at(port, rank, 4, rank == 1 ? Deadline::after_us(kAppointed) : patience()); });
  for (auto& result : results) {
    EXPECT_EQ(result.status().code(), Code::timeout) << result.status().message();
    EXPECT_THAT(result.status().message(), AllOf(HasSubstr("rank 3 of 4 has not joined"), HasSubstr("of rank 1)")));
  }
}

TEST(Joining, WithoutRank0TheDeadlineHoldsAndTheLastAttemptIsShown) {
  const uint16_t port = free_port();
  auto result = join_at(port, 1, 2, Deadline::after_us(kAppointed));
  EXPECT_EQ(result.status().code(), Code::timeout);
  EXPECT_THAT(result.status().message(),
              AllOf(HasSubstr("rank 1 could not reach the store"), HasSubstr("127.0.0.1:" + std::to_string(port)),
                    HasSubstr("Connection refused")));
}

TEST(Joining, Rank0MayComeLate) {
  const uint16_t port = free_port();
  auto results = join_all(3, [&](int rank) {
    if (rank == 0) sleep_us(kSecond);
    return join_at(port, rank, 3);
  });
  expect_joined(results);
}

TEST(Joining, TimeoutsOfAnyLengthMeanWhatTheySay) {
  const uint16_t port = free_port();
  EXPECT_EQ(join_at(port, 1, 2, Deadline::after_us(0)).status().code(), Code::timeout);
  EXPECT_EQ(join_at(port, 1, 2, Deadline::after_us(1000)).status().code(), Code::timeout);
  for (const Deadline deadline :
       {Deadline::never(), Deadline::after_us(INT64_MAX), Deadline::after_us(int64_t{INT32_MAX} * kSecond)}) {
    auto results = join_all(2, [&](int rank) {
      if (rank == 0) sleep_us(kSecond / 4);
      return join_at(port, rank, 2, deadline);
    });
    expect_joined(results);
  }
}

TEST(Joining, ARankThatGivesUpWhileTheOthersWaitIsNamed) {
  const uint16_t port = free_port();
  auto results = join_all(4, [&](int i) -> SessionResult {
    if (i < 3) return join_at(port, i, 5);
    // A rank that is welcomed and dies.
    sleep_us(kSecond / 4);
    Message join;
    join.type = Message::Type::join;
    join.rank = 3;
    join.count = 5;
    join.name = "1.0";
    auto dead = attempt(numeric_address("127.0.0.1", port), {"", "test"}, join, patience());
    EXPECT_EQ(dead.kind, Attempt::Kind::reached) << dead.text;
    return Status(Code::aborted, "");
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(results[rank].status().code(), Code::peer_failed) << results[rank].status().message();
    EXPECT_EQ(results[rank].status().failed_rank(), 3);
  }
}

TEST(Joining, TheEndOfRank0WhileJoiningIsItsFailure) {
  const uint16_t port = free_port();
  std::optional<SessionResult> result;
  std::thread waiting;
  {
    auto listening = listen_on(port, Reach::loopback);
    ASSERT_TRUE(listening.ok());
    auto server = StoreServer::start({3, {"", "test"}, {}}, std::move(listening.listeners));
    ASSERT_TRUE(server.ok());
    waiting = std::thread([&] { result.emplace(join_at(port, 1, 3)); });
    sleep_us(kSecond / 2);
  }
  waiting.join();
  EXPECT_EQ(result->status().code(), Code::peer_failed) << result->status().message();
  EXPECT_EQ(result->status().failed_rank(), 0);
}

TEST(Joining, ASecretIsNeededWhereThereIsOne) {
  const uint16_t port = free_port();
  auto results = join_all(4, [&](int i) {
    const std::string secret = i == 3 ? "wrong" : "the job's secret";
    return join_at(port, std::min(i, 2), 3, patience(), secret);
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(results[rank].ok()) << results[rank].status().message();
  EXPECT_EQ(results[3].status().code(), Code::mismatch);
  EXPECT_THAT(results[3].status().message(), HasSubstr("TUTTI_SECRET differs"));
}

TEST(Joining, WithoutASecretNoOtherMachineIsAsked) {
  for (int rank : {0, 1}) {
    auto result =
        Session::join(options(address_rendezvous("192.0.2.77", free_port(), rank, 2)), Deadline::after_us(kAppointed));
    EXPECT_EQ(result.status().code(), Code::invalid_argument) << result.status().message();
    EXPECT_THAT(result.status().message(), AllOf(HasSubstr("another machine"), HasSubstr("TUTTI_SECRET")));
  }
}

TEST(Joining, AddressesOfEveryForm) {
  for (const char* host : {"127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost", "localhost."}) {
    for (const char* secret : {"", "secret"}) {
      SCOPED_TRACE(std::string(host) + " secret \"" + secret + "\"");
      if (std::string(host) == "::1" && listen_on(0, Reach::loopback).listeners.sockets.size() < 2) continue;
      const uint16_t port = free_port();
      auto results = join_all(2, [&](int rank) {
        return Session::join(options(address_rendezvous(host, port, rank, 2, secret)), patience());
      });
      expect_joined(results);
    }
  }
}

TEST(Joining, AnOwnAddressWorksWithAndWithoutASecret) {
  const Address own = chosen_addresses({}).value().front();
  if (own.is_loopback()) GTEST_SKIP() << "this machine has no address but loopback";
  for (const char* secret : {"", "secret"}) {
    const uint16_t port = free_port();
    auto results = join_all(2, [&](int rank) {
      return Session::join(options(address_rendezvous(own.host(), port, rank, 2, secret)), patience());
    });
    expect_joined(results);
    for (auto& result : results) {
      if (!result.ok()) continue;
      EXPECT_EQ((*result)->local_host(), *secret ? own.host() : own.family() == AF_INET6 ? "::1" : "127.0.0.1");
    }
  }
}

TEST(Joining, AnUnknownNameIsATimeoutThatShowsTheName) {
  auto result =
      Session::join(options(address_rendezvous("no-such-host.invalid", 29500, 1, 2)), Deadline::after_us(kAppointed));
  EXPECT_EQ(result.status().code(), Code::timeout);
  EXPECT_THAT(result.status().message(), HasSubstr("\"no-such-host.invalid\" cannot be resolved"));
}

TEST(Joining, TheSamePortAgainAndAgain) {
  const uint16_t port = free_port();
  for (int round = 0; round < 300; ++round) {
    auto results = join_all(4, [&](int rank) -> SessionResult {
      auto session = join_at(port, rank, 4);
      if (!session) return session;
      // A value of another round would show.
      auto values = (*session)->exchange("round", std::to_string(round), patience());
      if (!values) return values.status();
      for (const std::string& value : *values) EXPECT_EQ(value, std::to_string(round));
      const Status left = (*session)->leave(patience());
      if (!left.ok()) return left;
      return session;
    });
    expect_joined(results);
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

// Ranks that do not wait for each other between worlds: some come to the next one while the last still ends.
TEST(Joining, WorldsFollowEachOtherWithoutAPause) {
  const uint16_t port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 100; ++round) {
        auto session = join_at(port, rank, 3);
        ASSERT_TRUE(session.ok()) << "round " << round << ": " << session.status().message();
        auto values = (*session)->exchange("round", std::to_string(round), patience());
        ASSERT_TRUE(values.ok()) << "round " << round << ": " << values.status().message();
        for (const std::string& value : *values) ASSERT_EQ(value, std::to_string(round));
        const Status left = (*session)->leave(patience());
        ASSERT_TRUE(left.ok()) << left.message();
      }
    });
  for (auto& thread : threads) thread.join();
}

// The former world's host may stay long, until its last rank has left: the next rank 0 waits for the port.
TEST(Joining, AWorldThatEndsSlowlyDelaysTheNextOneOnItsPort) {
  const uint16_t port = free_port();
  auto former = join_all(2, [&](int rank) { return join_at(port, rank, 2); });
  expect_joined(former);
  std::thread host([&] { EXPECT_TRUE((*former[0])->leave(patience()).ok()); });
  std::thread late([&] {
    sleep_us(6 * kSecond);  // more than the time for which a port in use is waited for
    EXPECT_TRUE((*former[1])->leave(patience()).ok());
  });
  sleep_us(kSecond / 2);
  auto next = join_at(port, 0, 2, Deadline::after_us(kSecond));
  EXPECT_EQ(next.status().code(), Code::timeout);
  EXPECT_THAT(next.status().message(), HasSubstr("is ending"));
  auto results = join_all(2, [&](int rank) {
    if (rank == 1) late.join();  // it is still in the former world until then
    return join_at(port, rank, 2);
  });
  expect_joined(results);
  host.join();
}

TEST(Joining, UnderTorchrunTheStoreTakesAPortAfterItsOwn) {
  const uint16_t base = free_port();
  Foreign agent(base, Foreign::Manner::all_ones);
  Foreign other(static_cast<uint16_t>(base + 1), Foreign::Manner::http);
  auto results = join_all(3, [&](int rank) {
    Rendezvous rendezvous = address_rendezvous("127.0.0.1", base, rank, 3);
    rendezvous.ports.clear();
    for (int i = 1; i <= 16; ++i) rendezvous.ports.push_back(static_cast<uint16_t>(base + i));
    return Session::join(options(std::move(rendezvous)), patience());
  });
  expect_joined(results);
}

TEST(Joining, JobsOnNeighbouringPortsDoNotMix) {
  const uint16_t base = free_port();
  const auto join_job = [&](int job, int rank) {
    Rendezvous rendezvous = address_rendezvous("127.0.0.1", base, rank, 2);
    rendezvous.label = "port " + std::to_string(base + job);
    rendezvous.ports.clear();
    for (int i = 1; i <= 16; ++i) rendezvous.ports.push_back(static_cast<uint16_t>(base + job + i));
    return Session::join(options(std::move(rendezvous)), patience());
  };
  auto results = join_all(6, [&](int i) -> SessionResult {
    auto session = join_job(i / 2, i % 2);
    if (!session) return session;
    auto values = (*session)->exchange("job", std::to_string(i / 2), patience());
    if (!values) return values.status();
    for (const std::string& value : *values) EXPECT_EQ(value, std::to_string(i / 2));
    return session;
  });
  expect_joined(results);
}

}  // namespace
}  // namespace tutti::internal
