// The store among strangers: what is no rank changes nothing, and what is no store is recognised.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "store_stranger.h"
#include "store_world.h"

namespace tutti::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

uint64_t seed() {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu (TUTTI_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  return seed;
}

SessionResult join_at(uint16_t port, int rank, int size, Deadline deadline = patience()) {
  return Session::join(options(address_rendezvous("127.0.0.1", port, rank, size)), deadline);
}

TEST(Strangers, DisturbNoWorldThatJoinsAndLeaves) {
  const uint16_t port = free_port();
  Nuisance first(port, seed()), second(port, seed() + 1);
  for (int round = 0; round < 50; ++round) {
    auto results = join_all(4, [&](int rank) -> SessionResult {
      auto session = join_at(port, rank, 4);
      if (!session) return session;
      auto values = (*session)->exchange("x", "y", patience());
      if (!values) return values.status();
      const Status left = (*session)->leave(patience());
      if (!left.ok()) return left;
      return session;
    });
    for (auto& result : results) ASSERT_TRUE(result.ok()) << "round " << round << ": " << result.status().message();
  }
  EXPECT_GT(first.connections() + second.connections(), 100);
}

TEST(Strangers, AreDroppedOldestFirstWhenTheyAreTooMany) {
  const uint16_t port = free_port();
  auto listening = listen_on(port, Reach::loopback);
  ASSERT_TRUE(listening.ok()) << listening.status().message();
  auto server = StoreServer::start({2, {"", "test"}, {}}, std::move(listening.listeners));
  ASSERT_TRUE(server.ok()) << server.status().message();
  std::vector<Socket> silent;
  for (size_t i = 0; i < kMaxStrangers + 50; ++i) {
    auto socket = connect_to(numeric_address("127.0.0.1", port), patience());
    ASSERT_TRUE(socket.ok()) << socket.status().message();
    silent.push_back(std::move(*socket));
  }
  // The first is closed: it reads an end. The last one stays.
  EXPECT_NE(wait_for(silent.front().fd(), POLLIN, patience()), 0);
  EXPECT_EQ(wait_for(silent.back().fd(), POLLIN, Deadline::after_us(50'000)), 0);
  // And ranks come in among them.
  auto results = join_all(2, [&](int rank) {
    Rendezvous rendezvous = address_rendezvous("127.0.0.1", port, rank, 2);
    rendezvous.serve = rendezvous.served_by_rank = false;
    return Session::join(options(std::move(rendezvous)), patience());
  });
  for (auto& result : results) EXPECT_TRUE(result.ok()) << result.status().message();
}

class ForeignService : public testing::TestWithParam<Foreign::Manner> {};

TEST_P(ForeignService, OnThePortIsRecognisedByARank) {
  const uint16_t port = free_port();
  Foreign foreign(port, GetParam());
  const bool says_something = GetParam() != Foreign::Manner::silent && GetParam() != Foreign::Manner::closing;
  auto result = join_at(port, 1, 2, says_something ? patience() : Deadline::after_us(kSecond / 2));
  EXPECT_EQ(result.status().code(), says_something ? Code::mismatch : Code::timeout) << result.status().message();
  EXPECT_THAT(result.status().message(), HasSubstr("127.0.0.1:" + std::to_string(port) + " answers, but"));
  if (says_something) {
    EXPECT_THAT(result.status().message(), HasSubstr("it is no tutti store"));
  }
}

TEST(Strangers, WhoHoldsThePortKeepsRank0FromServing) {
  const uint16_t port = free_port();
  Foreign foreign(port, Foreign::Manner::http);
  auto result = join_at(port, 0, 2);
  EXPECT_EQ(result.status().code(), Code::out_of_resources) << result.status().message();
  EXPECT_THAT(result.status().message(), AllOf(HasSubstr("rank 0 cannot serve the store"),
                                               HasSubstr("Address already in use"), HasSubstr("answers, but")));
}

INSTANTIATE_TEST_SUITE_P(All, ForeignService,
                         testing::Values(Foreign::Manner::http, Foreign::Manner::all_ones, Foreign::Manner::silent,
                                         Foreign::Manner::closing, Foreign::Manner::banner));

// Who knows the secret but breaks the rules is dropped; a member that does so has failed.
TEST(Strangers, AMemberThatSendsRubbishHasFailed) {
  const uint16_t port = free_port();
  std::optional<Attempt> bad;
  auto results = join_all(3, [&](int rank) -> SessionResult {
    if (rank < 2) return join_at(port, rank, 3);
    Message join;
    join.type = Message::Type::join;
    join.rank = 2;
    join.count = 3;
    join.name = "1.0";
    do {
      bad = attempt(numeric_address("127.0.0.1", port), {"", "test"}, join, patience());
    } while (bad->kind == Attempt::Kind::again);
    return Status(Code::aborted, "");
  });
  ASSERT_EQ(bad->kind, Attempt::Kind::reached) << bad->text;
  const std::string huge(1 << 16, '\xff');
  ASSERT_GT(send(bad->reached->socket.fd(), huge.data(), huge.size(), MSG_NOSIGNAL), 0);
  for (int rank : {0, 1}) {
    ASSERT_TRUE(results[rank].ok()) << results[rank].status().message();
    Event event;
    ASSERT_NE(wait_for((*results[rank])->fd(), POLLIN, patience()), 0);
    (*results[rank])->serve([&](const Event& heard) { event = heard; });
    EXPECT_EQ(event.kind, Event::Kind::peer_failed);
    EXPECT_EQ(event.rank, 2);
    EXPECT_THAT(event.text, HasSubstr("what no rank sends"));
  }
}

}  // namespace
}  // namespace tutti::internal
