// Several transports as one: rank 0 of two fake networks, of which one leads to rank 1 and the other to rank 2.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "transport/fake/fake_network.h"
#include "transport/routed_transport.h"

namespace tutti::internal {
namespace {

constexpr int kRanks = 3;

class Routed : public testing::Test {
 protected:
  Routed() : near_(kRanks, 1, {}), far_(kRanks, 2, {}) {
    std::vector<std::unique_ptr<Transport>> parts;
    parts.push_back(near_.make(0));
    parts.push_back(far_.make(0));
    addresses_ = {"", near_of_.emplace_back(near_.make(1))->address(), far_of_.emplace_back(far_.make(2))->address()};
    const std::string own[] = {parts[0]->address(), parts[1]->address()};
    routed_ = std::make_unique<RoutedTransport>(std::move(parts), std::vector{0, 0, 1});
    for (const int peer : {1, 2}) {
      EXPECT_TRUE(routed_->connect(peer, addresses_[static_cast<size_t>(peer)], Deadline::never()).ok());
      EXPECT_TRUE(at(peer).connect(0, own[peer - 1], Deadline::never()).ok());
    }
  }
  Transport& at(int peer) { return peer == 1 ? *near_of_.front() : *far_of_.front(); }
  Post receive(int peer, uint64_t match, uint64_t& value) {
    return routed_->post_recv({.channel = 1, .from = {peer, match}, .data = &value, .bytes = 8, .ticket = match});
  }
  void send_from(int peer, uint64_t match, const uint64_t& value) {
    const Endpoint end{0, match};
    EXPECT_NE(at(peer).post_send({.channel = 1, .to = {&end, 1}, .data = &value, .bytes = 8, .ticket = 1}),
              Post::failed);
  }
  // Polls all with so much room, until `count` requests of rank 0 have completed; their tickets.
  std::vector<Ticket> poll_until(size_t count, size_t room) {
    std::vector<Ticket> tickets;
    std::array<Completion, 8> found;
    for (int look = 0; tickets.size() < count && look < 100'000; ++look) {
      for (const int peer : {1, 2}) at(peer).poll(found);
      const size_t taken = routed_->poll(std::span(found).first(room));
      for (size_t i = 0; i < taken; ++i) tickets.push_back(found[i].ticket);
    }
    return tickets;
  }

  FakeNetwork near_, far_;
  std::vector<std::unique_ptr<Transport>> near_of_, far_of_;
  std::vector<std::string> addresses_;
  std::unique_ptr<RoutedTransport> routed_;
};

TEST_F(Routed, EachPeerIsReachedItsWay) {
  EXPECT_STREQ(routed_->name(), "fake+fake");
  EXPECT_EQ(routed_->way_to(1), 0);
  EXPECT_EQ(routed_->way_to(2), 1);
  uint64_t found[3] = {};
  for (const int peer : {1, 2}) EXPECT_EQ(receive(peer, 7, found[peer]), Post::posted);
  send_from(1, 7, 11);
  send_from(2, 7, 22);
  EXPECT_EQ(poll_until(2, 8).size(), 2U);
  EXPECT_EQ(found[1], 11U);
  EXPECT_EQ(found[2], 22U);
}

TEST_F(Routed, CompletionsOfBothComeThroughLittleRoom) {
  constexpr uint64_t kMany = 50;
  std::vector<uint64_t> found(2 * kMany + 1);
  const uint64_t value = 5;
  for (uint64_t match = 1; match <= kMany; ++match)
    for (const int peer : {1, 2}) {
      EXPECT_EQ(receive(peer, match, found[2 * match - static_cast<uint64_t>(peer - 1)]), Post::posted);
      send_from(peer, match, value);
    }
  EXPECT_EQ(poll_until(2 * kMany, 1).size(), 2 * kMany);
}

TEST_F(Routed, WhatAPeerSendsUnaskedIsThereLater) {
  const uint64_t value = 33;
  send_from(2, 9, value);
  EXPECT_TRUE(poll_until(0, 8).empty());
  uint64_t found = 0;
  (void)receive(2, 9, found);
  for (int look = 0; found == 0 && look < 100'000; ++look) poll_until(1, 8);
  EXPECT_EQ(found, 33U);
}

TEST_F(Routed, ACancelledChannelIsCancelledEverywhereAndOthersGoOn) {
  uint64_t dropped[3] = {}, found = 0;
  for (const int peer : {1, 2}) EXPECT_EQ(receive(peer, 7, dropped[peer]), Post::posted);
  routed_->cancel(1);
  EXPECT_EQ(routed_->post_recv({.channel = 2, .from = {2, 1}, .data = &found, .bytes = 8, .ticket = 99}), Post::posted);
  const uint64_t value = 4;
  const Endpoint end{0, 1};
  at(2).post_send({.channel = 2, .to = {&end, 1}, .data = &value, .bytes = 8, .ticket = 1});
  send_from(1, 7, value);
  EXPECT_EQ(poll_until(1, 8), std::vector<Ticket>{99});
  EXPECT_EQ(dropped[1], 0U);
}

TEST_F(Routed, AWindowIsOneForAllAndGivenBackOnce) {
  auto window = routed_->allocate(100'000);
  ASSERT_TRUE(window.ok());
  EXPECT_TRUE(routed_->release(*window).ok());
  EXPECT_EQ(routed_->release(*window).code(), Code::invalid_argument);
}

TEST_F(Routed, ADeadPeerOfEachIsReported) {
  near_.die(1);
  far_.die(2);
  std::vector<int> failed;
  std::array<Completion, 8> found;
  for (int look = 0; failed.size() < 2 && look < 100'000; ++look) {
    routed_->poll(found);
    if (const PeerFailure failure = routed_->take_failure(); failure.peer >= 0) failed.push_back(failure.peer);
  }
  EXPECT_EQ(failed, (std::vector{1, 2}));
  uint64_t value = 0;
  EXPECT_EQ(receive(2, 1, value), Post::failed);
}

}  // namespace
}  // namespace tutti::internal
