// What shm does when things go wrong: cancelled operations, peers given up, full arenas, strangers at the door.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "tests/transport/shm_world.h"
#include "transport/shm/address.h"
#include "transport/shm/handshake.h"
#include "transport/shm/socket.h"

namespace tutti::internal::testing {
namespace {

using ::testing::HasSubstr;

Post send(ShmTransport& from, int to, uint64_t match, const void* data, size_t bytes, uint64_t channel = 1) {
  const Endpoint end{to, match};
  return from.post_send({.channel = channel, .to = {&end, 1}, .data = data, .bytes = bytes, .ticket = match});
}
Post recv(ShmTransport& at, int from, uint64_t match, void* data, size_t bytes, uint64_t channel = 1) {
  return at.post_recv({.channel = channel, .from = {from, match}, .data = data, .bytes = bytes, .ticket = match});
}
std::vector<Completion> settle(ShmWorld& world, int rank) {
  std::vector<std::vector<Completion>> done;
  for (int i = 0; i < 200; ++i) world.poll(done);
  return done[static_cast<size_t>(rank)];
}

TEST(ShmFailures, ACancelledReceiveTakesNothingAndFreesTheSender) {
  ShmWorld world(2);
  std::vector<char> data(100000, 'x'), into(100000, '-');
  ASSERT_EQ(recv(world.rank(1), 0, 1, into.data(), into.size()), Post::posted);
  world.rank(1).cancel(1);
  ASSERT_EQ(send(world.rank(0), 1, 1, data.data(), data.size()), Post::posted);
  EXPECT_TRUE(settle(world, 1).empty());
  EXPECT_EQ(into, std::vector<char>(100000, '-'));
}

// The one that connected needs nothing more of the other; what it sent before it left arrives all the same.
TEST(ShmFailures, APeerMayLeaveBeforeTheOtherEndHasNoticedItsConnection) {
  auto first = ShmTransport::create({.rank = 0, .world_size = 2}),
       second = ShmTransport::create({.rank = 1, .world_size = 2});
  ASSERT_TRUE(first.ok() && second.ok());
  const std::string address = (*first)->address();
  std::thread leaving([&] {
    ASSERT_TRUE((*first)->connect(1, (*second)->address(), Deadline::after_us(10'000'000)).ok());
    const int value = 7;
    EXPECT_EQ(send(**first, 1, 1, &value, sizeof value), Post::done);
    first->reset();
  });
  const Watch watch = (*second)->watches().at(0);
  for (int seen = 0; seen < 2; ++seen) {  // the connection, and its first packet; its last one stays unread
    pollfd entry{watch.fd, POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 10'000), 1);
    (*second)->serve(watch.key);
  }
  leaving.join();
  std::optional<WatchThread> late;
  std::thread serving([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    late.emplace(**second);
  });
  const Status status = (*second)->connect(0, address, Deadline::after_us(10'000'000));
  EXPECT_TRUE(status.ok()) << status.message();
  serving.join();
  int found = 0;
  std::array<Completion, 1> done{};
  const Deadline deadline = Deadline::after_us(10'000'000);
  if (recv(**second, 0, 1, &found, sizeof found) == Post::posted) {
    while ((*second)->poll(done) == 0) ASSERT_FALSE(deadline.passed());
  }
  EXPECT_EQ(done[0].code, Code::ok);
  EXPECT_EQ(found, 7);
  late.reset();
}

TEST(ShmFailures, MessagesOfACancelledChannelAreDroppedUntilItIsForgotten) {
  ShmWorld world(2);
  std::vector<char> large(100000, 'x');
  int value = 7;
  world.rank(1).cancel(1);
  ASSERT_EQ(send(world.rank(0), 1, 1, &value, 4), Post::done);
  ASSERT_EQ(send(world.rank(0), 1, 2, large.data(), 100), Post::done);
  ASSERT_EQ(send(world.rank(0), 1, 3, large.data(), large.size()), Post::posted);
  EXPECT_EQ(world.wait(0, 1).at(0).code, Code::ok);  // nobody reads it any more: its memory is free
  world.rank(1).forget(1);
  value = 8;
  ASSERT_EQ(send(world.rank(0), 1, 1, &value, 4), Post::done);
  int found = 0;
  ASSERT_EQ(recv(world.rank(1), 0, 1, &found, 4), Post::posted);
  EXPECT_EQ(world.wait(1, 1).at(0).ticket, 1u);
  EXPECT_EQ(found, 8);
}

TEST(ShmFailures, OtherChannelsAreNotCancelled) {
  ShmWorld world(2);
  std::vector<char> data(100000, 'x'), into(100000, '-');
  ASSERT_EQ(recv(world.rank(1), 0, 1, into.data(), into.size(), 2), Post::posted);
  ASSERT_EQ(send(world.rank(0), 1, 1, data.data(), data.size(), 2), Post::posted);
  world.rank(0).cancel(1);
  world.rank(1).cancel(1);
  EXPECT_EQ(world.wait(1, 1).at(0).code, Code::ok);
  EXPECT_EQ(world.wait(0, 1).at(0).code, Code::ok);
  EXPECT_EQ(into, data);
}

TEST(ShmFailures, ReadingWhatTheSenderHasTakenBackIsAnError) {
  ShmWorld world(2);
  std::vector<char> data(100000, 'x'), into(100000);
  ASSERT_EQ(send(world.rank(0), 1, 1, data.data(), data.size()), Post::posted);
  world.rank(0).cancel(1);  // the memory may be changed from here on
  ASSERT_EQ(recv(world.rank(1), 0, 1, into.data(), into.size()), Post::posted);
  EXPECT_EQ(world.wait(1, 1).at(0).code, Code::aborted);
  EXPECT_TRUE(settle(world, 0).empty());
}

TEST(ShmFailures, ChunksOfACancelledReceiveDoNotReachTheNextOne) {
  ShmWorld world(2, false);
  constexpr size_t kBytes = 3'000'000;
  std::vector<char> first(kBytes, 'x'), second(kBytes, 'y'), into(kBytes), next(kBytes);
  ASSERT_EQ(send(world.rank(0), 1, 1, first.data(), kBytes, 1), Post::posted);
  ASSERT_EQ(recv(world.rank(1), 0, 1, into.data(), kBytes, 1), Post::posted);
  std::vector<std::vector<Completion>> done;
  while (into[0] != 'x') world.poll(done);
  world.rank(1).cancel(1);
  ASSERT_EQ(recv(world.rank(1), 0, 1, next.data(), kBytes, 2), Post::posted);
  ASSERT_EQ(send(world.rank(0), 1, 1, second.data(), kBytes, 2), Post::posted);
  EXPECT_EQ(world.wait(1, 1).at(0).code, Code::ok);
  EXPECT_EQ(next, second);
  EXPECT_EQ(into.back(), '\0');
  EXPECT_EQ(world.wait(0, 2).size(), 2u);  // the first was streamed to nobody
}

TEST(ShmFailures, CompletionsOfACancelledChannelDoNotFollow) {
  ShmWorld world(2);
  std::vector<char> data(100000, 'x'), into(100000);
  ASSERT_EQ(recv(world.rank(1), 0, 1, into.data(), into.size()), Post::posted);
  ASSERT_EQ(send(world.rank(0), 1, 1, data.data(), data.size()), Post::posted);
  for (int i = 0; i < 10; ++i) {  // both complete, but nobody fetches the completions
    EXPECT_EQ(world.rank(1).poll({}), 0u);
    EXPECT_EQ(world.rank(0).poll({}), 0u);
  }
  EXPECT_EQ(into, data);
  world.rank(0).cancel(1);
  world.rank(1).cancel(1);
  EXPECT_TRUE(settle(world, 0).empty());
  EXPECT_TRUE(settle(world, 1).empty());
}

TEST(ShmFailures, SlotsThatNobodyTakesStopNoOtherMessage) {
  for (const bool read : {false, true}) {
    ShmWorld world(2, read);
    std::vector<char> data(1000, 'x'), found(1000);
    uint64_t match = 0;
    while (send(world.rank(0), 1, ++match, data.data(), data.size()) == Post::done) {
      std::array<Completion, 4> none;
      EXPECT_EQ(world.rank(1).poll(none), 0u);
    }
    ASSERT_LT(match, 1000u);
    std::vector<char> last(1000, 'y');
    ASSERT_EQ(send(world.rank(0), 1, 5000, last.data(), last.size()), Post::posted);  // all slots are held
    ASSERT_EQ(recv(world.rank(1), 0, 5000, found.data(), found.size()), Post::posted);
    EXPECT_EQ(world.wait(1, 1).at(0).code, Code::ok);
    EXPECT_EQ(found, last);
  }
}

TEST(ShmFailures, GivingAPeerUpFreesItsSlots) {
  ShmWorld world(3);
  std::vector<char> data(1000, 'x');
  uint64_t match = 0;
  Post post = Post::done;
  while ((post = send(world.rank(0), 1, ++match, data.data(), data.size())) == Post::done) {
    std::array<Completion, 4> none;
    world.rank(1).poll(none);
  }
  ASSERT_EQ(post, Post::posted);
  EXPECT_EQ(send(world.rank(0), 2, 1, data.data(), data.size()), Post::posted);
  world.rank(0).disconnect(1);
  EXPECT_EQ(send(world.rank(0), 2, 2, data.data(), data.size()), Post::done);
  EXPECT_EQ(send(world.rank(0), 1, 9999, data.data(), data.size()), Post::failed);
  EXPECT_EQ(recv(world.rank(0), 1, 9999, data.data(), data.size()), Post::failed);
  EXPECT_EQ(world.rank(0).take_failure().peer, -1);  // the owner knows
  const Deadline deadline = Deadline::after_us(5'000'000);
  PeerFailure failure;
  while ((failure = world.rank(1).take_failure()).peer < 0 && !deadline.passed()) usleep(1000);
  EXPECT_EQ(failure.peer, 0);
  EXPECT_THAT(failure.reason, HasSubstr("given up"));
}

TEST(ShmFailures, ALengthThatDiffersEndsAReductionAtOnce) {
  ShmWorld world(3);
  std::vector<char> data(400), into(400);
  ASSERT_EQ(send(world.rank(1), 0, 1, data.data(), 200), Post::done);
  const std::array<ReduceOperand, 2> operands{{{{1, 1}, nullptr}, {{2, 1}, nullptr}}};
  const auto kernel = [](void*, const void* const*, int, size_t, uint32_t) { ADD_FAILURE() << "nothing to reduce"; };
  ASSERT_EQ(world.rank(0).post_reduce({.channel = 1,
                                       .operands = operands,
                                       .dst = into.data(),
                                       .element_count = 100,
                                       .reduction = {kernel, 4, 0},
                                       .ticket = 8}),
            Post::posted);
  const Completion done = world.wait(0, 1).at(0);
  EXPECT_EQ(done.code, Code::mismatch);
  EXPECT_EQ(done.found_bytes, 200u);
}

// ---- at the door

std::string name_of(const ShmTransport& transport) {
  auto address = shm::Address::decode(transport.address());
  return {address->socket_name.data(), strnlen(address->socket_name.data(), address->socket_name.size())};
}
UniqueFd knock(const ShmTransport& transport) {
  auto fd = shm::connect_abstract(name_of(transport), Deadline::after_us(1'000'000));
  EXPECT_TRUE(fd.ok()) << fd.status().message();
  return std::move(*fd);
}

struct Door {
  Door() {
    for (int rank = 0; rank < 2; ++rank) {
      ranks.push_back(std::move(*ShmTransport::create({.rank = rank, .world_size = 2})));
      watchers.push_back(std::make_unique<WatchThread>(*ranks.back()));
    }
  }
  ~Door() { watchers.clear(); }
  Status connect() { return ranks[0]->connect(1, ranks[1]->address(), Deadline::after_us(5'000'000)); }

  std::vector<std::unique_ptr<ShmTransport>> ranks;
  std::vector<std::unique_ptr<WatchThread>> watchers;
};

TEST(ShmStrangers, WhoSaysNothingOrRubbishChangesNothing) {
  Door door;
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(knock(*door.ranks[1]));
  for (const size_t bytes : {size_t{1}, size_t{8}, sizeof(shm::Packet), size_t{5000}}) {
    const std::vector<std::byte> rubbish(bytes, std::byte{0xff});
    UniqueFd fd = knock(*door.ranks[1]);
    EXPECT_EQ(shm::send_packet(fd.get(), rubbish, {}), 0);
    std::array<std::byte, 1> answer;
    ASSERT_TRUE(shm::wait_readable(fd.get(), Deadline::after_us(5'000'000)));
    EXPECT_LE(shm::receive_packet(fd.get(), answer).bytes, 0);  // shown the door
  }
  EXPECT_TRUE(door.connect().ok());
  EXPECT_EQ(door.ranks[1]->take_failure().peer, -1);
}

TEST(ShmStrangers, AHelloWithoutTheNonceIsRefusedWithTheReason) {
  Door door;
  UniqueFd fd = knock(*door.ranks[1]);
  shm::Packet hello;
  hello.kind = shm::PacketKind::hello;
  hello.rank = 0;
  hello.to_rank = 1;
  hello.world_size = 2;
  ASSERT_EQ(shm::send_packet(fd.get(), std::as_bytes(std::span(&hello, 1)), {}), 0);
  ASSERT_TRUE(shm::wait_readable(fd.get(), Deadline::after_us(5'000'000)));
  shm::Packet answer;
  ASSERT_EQ(shm::receive_packet(fd.get(), std::as_writable_bytes(std::span(&answer, 1))).bytes,
            static_cast<ssize_t>(sizeof answer));
  EXPECT_EQ(answer.kind, shm::PacketKind::refuse);
  EXPECT_THAT(answer.text.data(), HasSubstr("another job"));
  EXPECT_EQ(answer.nonce, 0u);
}

TEST(ShmStrangers, RanksOfWorldsOfDifferentSizesDoNotMeet) {
  auto a = ShmTransport::create({.rank = 0, .world_size = 2});
  auto b = ShmTransport::create({.rank = 1, .world_size = 3});
  WatchThread watcher(**b);
  const Status status = (*a)->connect(1, (*b)->address(), Deadline::after_us(5'000'000));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("rank 0 of 2, this is rank 1 of 3"));
}

TEST(ShmStrangers, APeerThatDoesNotAnswerIsATimeoutThatNamesIt) {
  auto a = ShmTransport::create({.rank = 0, .world_size = 2});
  auto b = ShmTransport::create({.rank = 1, .world_size = 2});
  const Status status = (*a)->connect(1, (*b)->address(), Deadline::after_us(50'000));
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 (pid " + std::to_string(getpid())));
}

TEST(ShmStrangers, AnAddressWhereNobodyListensAnyMoreIsAFailedPeer) {
  auto a = ShmTransport::create({.rank = 0, .world_size = 2});
  std::string address;
  {
    auto b = ShmTransport::create({.rank = 1, .world_size = 2});
    address = (*b)->address();
  }
  const Status status = (*a)->connect(1, address, Deadline::after_us(5'000'000));
  EXPECT_EQ(status.code(), Code::peer_failed);
  EXPECT_EQ(status.failed_rank(), 1);
}

TEST(ShmStrangers, TheAddressOfAnotherRankIsRefused) {
  Door door;
  EXPECT_EQ(door.ranks[0]->connect(0, door.ranks[1]->address(), Deadline::never()).code(), Code::mismatch);
  EXPECT_EQ(door.ranks[0]->connect(5, door.ranks[1]->address(), Deadline::never()).code(), Code::mismatch);
  EXPECT_EQ(door.ranks[0]->connect(1, "nonsense", Deadline::never()).code(), Code::mismatch);
}

}  // namespace
}  // namespace tutti::internal::testing
