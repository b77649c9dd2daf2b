// What the fake network promises beyond the contract: everything from one seed, and deaths where they are wanted.
#include "transport/fake/fake_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace tutti::internal {
namespace {

class Ranks {
 public:
  Ranks(int count, uint64_t seed, const FakeOptions& options = {}) : network_(count, seed, options) {
    for (int rank = 0; rank < count; ++rank) transports_.push_back(network_.make(rank));
    for (int from = 0; from < count; ++from)
      for (int to = 0; to < count; ++to)
        if (from != to) {
          const Status status = (*this)[from].connect(to, (*this)[to].address(), Deadline::never());
          EXPECT_TRUE(status.ok()) << status.message();
        }
  }
  Transport& operator[](int rank) { return *transports_[static_cast<size_t>(rank)]; }
  FakeNetwork& network() { return network_; }

  Post send(int from, int to, uint64_t match, const void* data, size_t bytes) {
    const Endpoint end{to, match};
    return (*this)[from].post_send({.channel = 1, .to = {&end, 1}, .data = data, .bytes = bytes, .ticket = match});
  }
  Post recv(int to, int from, uint64_t match, void* data, size_t bytes) {
    return (*this)[to].post_recv(
        {.channel = 1, .from = {from, match}, .data = data, .bytes = bytes, .ticket = 1'000 + match});
  }
  std::vector<Ticket> poll(int rank) {
    std::array<Completion, 32> found;
    const size_t count = (*this)[rank].poll(found);
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < count; ++i) tickets.push_back(found[i].ticket);
    return tickets;
  }

 private:
  FakeNetwork network_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

TEST(FakeNetwork, ARankDiesAtThePostItIsToldTo) {
  Ranks ranks(2, /*seed=*/1);
  uint64_t value = 7;
  uint64_t found = 0;
  ranks.network().die_at_post(/*rank=*/0, /*post=*/2);
  EXPECT_EQ(ranks.send(0, 1, 1, &value, 8), Post::done);
  EXPECT_FALSE(ranks.network().is_dead(0));
  EXPECT_EQ(ranks.send(0, 1, 2, &value, 8), Post::failed);
  EXPECT_TRUE(ranks.network().is_dead(0));
  EXPECT_EQ(ranks.network().post_count(0), 2u);
  EXPECT_EQ(ranks[1].take_failure().peer, 0);
  EXPECT_EQ(ranks.recv(1, 0, 1, &found, 8), Post::done) << "sent before";
  EXPECT_EQ(found, 7u);
  EXPECT_EQ(ranks.recv(1, 0, 2, &found, 8), Post::failed);
}

// All that a run shows: answers to posts, and completions poll by poll.
std::vector<uint64_t> trace(uint64_t seed) {
  Ranks ranks(3, seed, {.most_delay_polls = 10, .reorder = true, .later_share = 0.2});
  std::vector<uint64_t> seen;
  std::array<uint64_t, 200> values{};
  for (uint64_t i = 0; i < 200; ++i) {
    const auto from = static_cast<int>(i % 3);
    const auto to = static_cast<int>((i + 1) % 3);
    seen.push_back(static_cast<uint64_t>(ranks.send(from, to, i, &values[i], 8)));
    seen.push_back(static_cast<uint64_t>(ranks.recv(to, from, i, &values[i], 8)));
    if (i == 150) ranks.network().die(2);
    for (int rank = 0; rank < 3; ++rank) {
      for (const Ticket ticket : ranks.poll(rank)) seen.push_back(ticket);
      seen.push_back(static_cast<uint64_t>(ranks[rank].take_failure().peer + 1));
    }
  }
  return seen;
}

TEST(FakeNetwork, EverythingFollowsFromTheSeed) {
  EXPECT_EQ(trace(1), trace(1));
  EXPECT_NE(trace(1), trace(2));
}

std::vector<Ticket> order_of_arrival(bool reorder, uint64_t seed) {
  Ranks ranks(2, seed, {.most_delay_polls = 30, .reorder = reorder});
  std::array<uint64_t, 50> values{};
  std::array<uint64_t, 50> found{};
  for (uint64_t i = 0; i < 50; ++i) ranks.send(0, 1, i, &values[i], 8);
  // Completions are delayed as well: when a message is there is seen by its bytes.
  found.fill(~uint64_t{0});
  std::vector<Ticket> order;
  std::set<uint64_t> left;
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_NE(ranks.recv(1, 0, i, &found[i], 8), Post::failed);
    left.insert(i);
  }
  for (int polls = 0; polls < 100; ++polls) {
    ranks.poll(1);
    for (auto it = left.begin(); it != left.end();) {
      const bool there = found[*it] != ~uint64_t{0};
      if (there) order.push_back(*it);
      it = there ? left.erase(it) : std::next(it);
    }
  }
  return order;
}

TEST(FakeNetwork, MessagesOvertakeEachOtherOnlyWhenAllowedTo) {
  int overtaking = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_TRUE(std::ranges::is_sorted(order_of_arrival(false, seed)));
    overtaking += !std::ranges::is_sorted(order_of_arrival(true, seed));
  }
  EXPECT_EQ(overtaking, 10);
}

TEST(FakeNetwork, AShareOfThePostsIsAnsweredWithLater) {
  Ranks ranks(2, 3, {.later_share = 0.5});
  uint64_t value = 0;
  int later = 0;
  for (uint64_t i = 0; i < 1000; ++i) later += ranks.send(0, 1, i, &value, 8) == Post::later;
  EXPECT_GT(later, 400);
  EXPECT_LT(later, 600);
}

TEST(FakeNetwork, TheMemoryOfADeadRankIsLeftAlone) {
  Ranks ranks(2, 4);
  std::vector<uint64_t> from(1000, 1);
  std::vector<uint64_t> to(1000, 2);
  ASSERT_EQ(ranks.recv(1, 0, 1, to.data(), 8000), Post::posted);
  ranks.network().die(1);
  ASSERT_EQ(ranks.send(0, 1, 1, from.data(), 8000), Post::failed);
  EXPECT_TRUE(ranks.poll(1).empty());
  EXPECT_EQ(to, std::vector<uint64_t>(1000, 2));

  // Its own offers are gone with it.
  Ranks others(2, 5);
  ASSERT_EQ(others.send(0, 1, 1, from.data(), 8000), Post::posted);
  others.network().die(0);
  EXPECT_EQ(others.recv(1, 0, 1, to.data(), 8000), Post::failed);
  EXPECT_EQ(to, std::vector<uint64_t>(1000, 2));
}

// What was complete when its sender died may still arrive, or not; the news of the death may come before or after.
TEST(FakeNetwork, TheLastWordsOfADeadRankArriveOrAreLost) {
  int arrived = 0;
  int lost = 0;
  int posted_into_the_void = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Ranks ranks(2, seed, {.most_delay_polls = 10});
    uint64_t value = 5;
    uint64_t found = 0;
    ASSERT_EQ(ranks.send(0, 1, 1, &value, 8), Post::done);
    ranks.network().die(0);
    posted_into_the_void += ranks.send(1, 0, 1, &value, 8) == Post::done;
    ranks.recv(1, 0, 1, &found, 8);
    for (int polls = 0; polls < 50; ++polls) ranks.poll(1);
    (found == 5 ? arrived : lost) += 1;
    EXPECT_EQ(ranks[1].take_failure().peer, 0);
    EXPECT_EQ(ranks[1].take_failure().peer, -1);
  }
  EXPECT_GT(arrived, 10);
  EXPECT_GT(lost, 10);
  EXPECT_GT(posted_into_the_void, 10);
}

TEST(FakeNetwork, HundredsOfRanksPassAMessageRound) {
  constexpr int kRanks = 300;
  Ranks ranks(kRanks, 6, {.most_delay_polls = 3, .later_share = 0.1});
  std::array<uint64_t, kRanks> values{};
  for (int rank = 0; rank < kRanks; ++rank) {
    const int next = (rank + 1) % kRanks;
    auto& value = values[static_cast<size_t>(rank)];
    auto& found = values[static_cast<size_t>(next)];
    ++value;
    while (ranks.send(rank, next, 1, &value, 8) == Post::later) {
    }
    Post post = Post::later;
    while (post == Post::later) post = ranks.recv(next, rank, 1, &found, 8);
    for (bool done = post == Post::done; !done;) done = !ranks.poll(next).empty();
    EXPECT_EQ(found, value);
  }
  EXPECT_EQ(values[0], static_cast<uint64_t>(kRanks));
}

}  // namespace
}  // namespace tutti::internal
