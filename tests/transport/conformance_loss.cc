// Cancelled channels, ranks that leave, ranks that are disconnected, and ranks that die.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

constexpr std::array<size_t, 4> kSizes{8, 3000, 100'000, 3'000'000};

TEST_P(Conformance, ACancelledReceiveTouchesItsMemoryNoMore) {
  const auto world = connected(2);
  uint64_t channel = 0;
  for (const size_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    ++channel;
    std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes, std::byte{2});
    (*world)[1].recv(channel, 0, 5, to.data(), bytes);
    (*world)[1].cancel(channel);
    std::fill(to.begin(), to.end(), std::byte{3});
    const Ticket sent = (*world)[0].send(channel, 1, 5, from.data(), bytes);
    EXPECT_EQ((*world)[0].wait(sent).code, Code::ok) << "a late message is dropped, and counts as received";
    world->settle();
    EXPECT_EQ(std::count(to.begin(), to.end(), std::byte{3}), static_cast<ptrdiff_t>(bytes));
  }
}

TEST_P(Conformance, CancelDropsTheMessagesThatAreThere) {
  const auto world = connected(2);
  uint64_t channel = 0;
  for (const size_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    ++channel;
    std::vector<std::byte> from(bytes);
    std::vector<Ticket> sent;
    for (uint64_t i = 0; i < 20; ++i) sent.push_back((*world)[0].send(channel, 1, i, from.data(), bytes));
    world->settle();
    (*world)[1].cancel(channel);
    for (const Ticket ticket : sent) EXPECT_EQ((*world)[0].wait(ticket).code, Code::ok);
  }
}

// A sender may use its memory again as soon as it has cancelled; the receiver never takes the new bytes for the
// message.
TEST_P(Conformance, ACancelledSendArrivesWholeOrIsAbortedOrDoesNotArrive) {
  const auto world = connected(2);
  uint64_t channel = 0;
  for (const size_t bytes : kSizes)
    for (const bool early : {false, true}) {
      SCOPED_TRACE(::testing::Message() << bytes << " bytes, early " << early);
      ++channel;
      std::vector<std::byte> from(bytes);
      std::vector<std::byte> to(bytes);
      fill(from, 1);
      Ticket received = early ? (*world)[1].recv(channel, 0, 5, to.data(), bytes) : 0;
      (*world)[0].send(channel, 1, 5, from.data(), bytes);
      (*world)[0].cancel(channel);
      std::fill(from.begin(), from.end(), std::byte{9});
      if (!early) {
        world->settle();
        received = (*world)[1].recv(channel, 0, 5, to.data(), bytes);
      }
      world->settle();
      if (const auto got = (*world)[1].result(received); !got) {
        (*world)[1].cancel(channel);
      } else if (got->code == Code::ok) {
        EXPECT_TRUE(holds(to, 1));
      } else {
        EXPECT_EQ(got->code, Code::aborted);
      }
    }
}

TEST_P(Conformance, CancelStopsReductionsOfWhichSomeOperandsAreThere) {
  const auto world = connected(3);
  uint64_t channel = 0;
  for (const size_t elements : {1u, 400u, 300'000u}) {
    SCOPED_TRACE(elements);
    ++channel;
    std::vector<uint64_t> data(elements, 7);
    std::vector<uint64_t> result(elements, 1);
    const std::array<ReduceOperand, 3> operands{{{{1, 1}, nullptr}, {{}, result.data()}, {{2, 1}, nullptr}}};
    (*world)[0].reduce(channel, operands, result.data(), elements, kDigits);
    const Ticket first = (*world)[1].send(channel, 0, 1, data.data(), 8 * elements);
    world->settle();
    (*world)[0].cancel(channel);
    const Ticket second = (*world)[2].send(channel, 0, 1, data.data(), 8 * elements);
    EXPECT_EQ((*world)[1].wait(first).code, Code::ok);
    EXPECT_EQ((*world)[2].wait(second).code, Code::ok);
    world->settle();
    EXPECT_EQ(std::count(result.begin(), result.end(), 1u), static_cast<ptrdiff_t>(elements));
  }
}

TEST_P(Conformance, OtherChannelsGoOnWhenOneIsCancelled) {
  const auto world = connected(2);
  for (const size_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    constexpr uint64_t kGood = 1'000'000;
    std::vector<std::byte> from(bytes);
    std::vector<std::byte> early(bytes);
    std::vector<std::byte> late(bytes);
    std::vector<std::byte> bad(bytes);
    fill(from, 4);
    const Ticket first = (*world)[1].recv(kGood, 0, bytes + 1, early.data(), bytes);
    (*world)[1].recv(bytes, 0, 1, bad.data(), bytes);
    const Ticket sent_first = (*world)[0].send(kGood, 1, bytes + 1, from.data(), bytes);
    (*world)[0].send(bytes, 1, 2, bad.data(), bytes);
    const Ticket sent_second = (*world)[0].send(kGood, 1, bytes + 2, from.data(), bytes);
    world->poll();
    (*world)[1].cancel(bytes);
    (*world)[0].cancel(bytes);
    const Ticket second = (*world)[1].recv(kGood, 0, bytes + 2, late.data(), bytes);
    EXPECT_EQ((*world)[1].wait(first).code, Code::ok);
    EXPECT_EQ((*world)[1].wait(second).code, Code::ok);
    EXPECT_EQ((*world)[0].wait(sent_first).code, Code::ok);
    EXPECT_EQ((*world)[0].wait(sent_second).code, Code::ok);
    EXPECT_TRUE(holds(early, 4));
    EXPECT_TRUE(holds(late, 4));
    world->settle();  // completions of the cancelled channel would be noticed
  }
}

// Requests and messages of cancelled channels give back what they held, however often.
TEST_P(Conformance, TenThousandCancelledChannelsUseUpNothing) {
  const auto world = connected(2);
  std::vector<std::byte> from(20'000);
  std::vector<std::byte> to(20'000);
  const auto run = [&](uint64_t channel) {
    const size_t bytes = std::array<size_t, 3>{8, 1000, 20'000}[channel % 3];
    (*world)[1].recv(channel, 0, 1, to.data(), bytes);    // nobody sends it
    (*world)[0].send(channel, 1, 2, from.data(), bytes);  // nobody receives it
    if (channel % 2 == 0) world->poll();
    (*world)[static_cast<int>(channel % 2)].cancel(channel);
    if (channel % 4 < 2) world->poll();
    (*world)[1 - static_cast<int>(channel % 2)].cancel(channel);
    world->poll();
    if (channel % 64 == 0) world->settle();
  };
  for (uint64_t channel = 1; channel <= 10'000; ++channel) {
    run(channel);
    if (channel > 100)
      for (const int rank : {0, 1}) (*world)[rank].transport().forget(channel - 100);
  }
  fill(from, 8);
  const Ticket sent = (*world)[0].send(0, 1, 1, from.data(), from.size());
  EXPECT_EQ((*world)[1].wait((*world)[1].recv(0, 0, 1, to.data(), to.size())).code, Code::ok);
  EXPECT_EQ((*world)[0].wait(sent).code, Code::ok);
  EXPECT_TRUE(holds(to, 8));
}

TEST_P(Conformance, CompletionsThatWaitAreCancelledToo) {
  const auto world = connected(2);
  std::array<uint64_t, 10> values{};
  std::array<uint64_t, 10> found{};
  Transport& receiver = (*world)[1].transport();
  for (size_t i = 0; i < 10; ++i) (*world)[1].recv(1, 0, i, &found[i], 8);
  (*world)[0].set_alone(true);
  for (size_t i = 0; i < 10; ++i) (*world)[0].send(1, 1, i, &values[i], 8);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(receiver.poll({}), 0u);
  receiver.cancel(1);
  std::array<Completion, 16> room;
  for (int i = 0; i < 200; ++i) EXPECT_EQ(receiver.poll(room), 0u);
}

// A goodbye: what was sent and complete is still received, and more is refused.
TEST_P(Conformance, WhatARankSentBeforeItLeftCanBeReceived) {
  const auto world = connected(3);
  uint64_t found = 0;
  std::array<uint64_t, 3> values{10, 11, 12};
  std::vector<uint64_t> complete;
  for (uint64_t i = 0; i < 3; ++i) {
    const Ticket sent = (*world)[1].send(1, 0, i, &values[i], 8);
    if ((*world)[1].result(sent)) complete.push_back(i);
  }
  world->leave(1);
  values.fill(0);
  world->settle();
  EXPECT_EQ((*world)[0].transport().take_failure().peer, -1) << "to leave is no failure";
  for (const uint64_t i : complete) {
    EXPECT_EQ((*world)[0].wait((*world)[0].recv(1, 1, i, &found, 8)).code, Code::ok);
    EXPECT_EQ(found, 10 + i);
  }
  EXPECT_EQ((*world)[0].transport().take_failure().peer, -1);

  // Refused, or waited for in vain where the goodbye is still on its way: a failure in both cases.
  const Ticket more = (*world)[0].recv(1, 1, 3, &found, 8);
  const PeerFailure failure = (*world)[0].wait_failure();
  EXPECT_EQ(failure.peer, 1);
  EXPECT_NE(failure.reason, "");
  EXPECT_EQ((*world)[0].result(more).value_or(Completion{more, Code::peer_failed, 0}).code, Code::peer_failed);
  EXPECT_EQ((*world)[0].wait((*world)[0].send(1, 1, 3, &found, 8)).code, Code::peer_failed);
  EXPECT_EQ((*world)[0].wait((*world)[0].recv(1, 1, 4, &found, 8)).code, Code::peer_failed);
  world->settle();
  EXPECT_EQ((*world)[0].transport().take_failure().peer, -1) << "reported once";

  // The others go on.
  uint64_t value = 5;
  (*world)[2].send(1, 0, 9, &value, 8);
  EXPECT_EQ((*world)[0].wait((*world)[0].recv(1, 2, 9, &found, 8)).code, Code::ok);
}

TEST_P(Conformance, ARankThatLeavesWhileItOwesAMessageIsAFailure) {
  const auto world = connected(2);
  uint64_t found = 0;
  const Ticket waiting = (*world)[0].recv(1, 1, 1, &found, 8);
  world->settle();
  world->leave(1);
  EXPECT_EQ((*world)[0].wait_failure().peer, 1);
  EXPECT_FALSE((*world)[0].result(waiting)) << "it does not complete";
  (*world)[0].cancel(1);
  world->settle();
  EXPECT_EQ((*world)[0].transport().take_failure().peer, -1);
}

// The thread that reports failures sleeps until a descriptor wakes it; polls, on another thread, are what finds them.
TEST_P(Conformance, WhoIsFoundGoneByAPollWakesTheWatchThread) {
  const auto world = connected(2);
  uint64_t found = 0;
  (*world)[0].recv(1, 1, 1, &found, 8);
  world->leave(1);
  Transport& transport = (*world)[0].transport();
  const auto is_awake = [&] {
    std::vector<pollfd> entries;
    for (const Watch& watch : transport.watches()) entries.push_back({watch.fd, POLLIN, 0});
    return poll(entries.data(), entries.size(), 0) > 0;
  };
  // What comes by connections is served at once, by the world's own thread; this stays.
  constexpr int kLooks = 20;
  const Deadline deadline = Deadline::after_us(10'000'000);
  for (int looks = 0; looks < kLooks && !deadline.passed(); looks = is_awake() ? looks + 1 : 0) {
    world->settle();
    usleep(2000);
  }
  EXPECT_TRUE(is_awake());
  EXPECT_EQ(transport.take_failure().peer, 1);
  EXPECT_EQ(transport.take_failure().peer, -1);
  EXPECT_FALSE(is_awake()) << "nothing is left to report";
}

TEST_P(Conformance, ARankThatLeavesWithoutReceivingIsAFailure) {
  const auto world = connected(2);
  std::vector<std::byte> from(5'000'000);
  const Ticket sent = (*world)[0].send(1, 1, 1, from.data(), from.size());
  ASSERT_FALSE((*world)[0].result(sent));
  world->settle();
  world->leave(1);
  EXPECT_EQ((*world)[0].wait_failure().peer, 1);
  EXPECT_FALSE((*world)[0].result(sent));
  (*world)[0].cancel(1);
}

TEST_P(Conformance, NothingIsPostedToADisconnectedPeer) {
  const auto world = connected(3);
  uint64_t found = 0;
  const uint64_t value = 3;
  (*world)[0].recv(1, 1, 1, &found, 8);
  (*world)[0].transport().disconnect(1);
  EXPECT_EQ((*world)[0].wait((*world)[0].send(2, 1, 1, &value, 8)).code, Code::peer_failed);
  EXPECT_EQ((*world)[0].wait((*world)[0].recv(2, 1, 1, &found, 8)).code, Code::peer_failed);
  const std::array<ReduceOperand, 2> operands{{{{}, &found}, {{1, 1}, nullptr}}};
  EXPECT_EQ((*world)[0].wait((*world)[0].reduce(2, operands, &found, 1, kDigits)).code, Code::peer_failed);
  const std::array<Endpoint, 2> both{{{2, 1}, {1, 1}}};
  EXPECT_EQ((*world)[0].wait((*world)[0].send(2, both, &value, 8)).code, Code::peer_failed);
  EXPECT_EQ((*world)[0].transport().take_failure().peer, -1) << "the owner knows already";
  (*world)[0].cancel(1);
  (*world)[0].transport().disconnect(1);
  EXPECT_EQ(world->connect(0, 1).code(), Code::peer_failed);

  // A refused send to several has reached none of them.
  const uint64_t other = 4;
  (*world)[0].send(2, 2, 1, &other, 8);
  EXPECT_EQ((*world)[2].wait((*world)[2].recv(2, 0, 1, &found, 8)).code, Code::ok);
  EXPECT_EQ(found, 4u);
}

TEST_P(Conformance, APeerThatWasNeverConnectedIsRefused) {
  const auto world = unconnected(3);
  ASSERT_TRUE(world->connect(0, 2).ok());
  ASSERT_TRUE(world->connect(2, 0).ok());
  uint64_t value = 0;
  EXPECT_EQ((*world)[0].wait((*world)[0].send(1, 1, 1, &value, 8)).code, Code::peer_failed);
  EXPECT_EQ((*world)[0].wait((*world)[0].recv(1, 1, 1, &value, 8)).code, Code::peer_failed);
}

TEST_P(Conformance, ADeadPeerIsReportedOnceToEachAndFailsItsPosts) {
  const auto world = connected(4);
  std::vector<std::byte> big(4'000'000);
  uint64_t found = 0;
  const Ticket owed = (*world)[0].recv(1, 3, 1, &found, 8);
  const Ticket offered = (*world)[0].send(1, 3, 1, big.data(), big.size());
  const std::array<ReduceOperand, 2> operands{{{{1, 1}, nullptr}, {{3, 1}, nullptr}}};
  const Ticket reduced = (*world)[2].reduce(1, operands, &found, 1, kDigits);
  world->poll();
  if (!GetParam()->kill(3)) GTEST_SKIP() << "ranks of this transport cannot die inside one process";
  for (const int rank : {0, 1, 2}) {
    const PeerFailure failure = (*world)[rank].wait_failure();
    EXPECT_EQ(failure.peer, 3);
    EXPECT_NE(failure.reason, "");
    EXPECT_EQ((*world)[rank].wait((*world)[rank].send(2, 3, 1, &found, 8)).code, Code::peer_failed);
    EXPECT_EQ((*world)[rank].wait((*world)[rank].recv(2, 3, 1, &found, 8)).code, Code::peer_failed);
    EXPECT_EQ((*world)[rank].transport().take_failure().peer, -1);
    EXPECT_EQ(world->connect(rank, 3).code(), Code::peer_failed);
  }
  world->settle();
  EXPECT_FALSE((*world)[0].result(owed));
  EXPECT_FALSE((*world)[0].result(offered));
  EXPECT_FALSE((*world)[2].result(reduced));
  for (const int rank : {0, 1, 2}) (*world)[rank].cancel(1);
  // The survivors go on.
  uint64_t value = 17;
  (*world)[1].send(2, 2, 8, &value, 8);
  EXPECT_EQ((*world)[2].wait((*world)[2].recv(2, 1, 8, &found, 8)).code, Code::ok);
  EXPECT_EQ(found, 17u);
}

}  // namespace
}  // namespace tutti::internal::conformance
