// How peers find each other, and that nothing is left of them.
#include <array>
#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

// Every ordered pair exchanges a message.
void exchange_all(World& world, uint64_t channel) {
  const auto size = static_cast<size_t>(world.size());
  std::vector<uint64_t> values(size * size);
  std::vector<uint64_t> found(size * size);
  std::vector<std::pair<int, Ticket>> tickets;
  for (size_t from = 0; from < size; ++from)
    for (size_t to = 0; to < size; ++to) {
      if (from == to) continue;
      const size_t i = from * size + to;
      values[i] = channel * 1000 + i;
      const auto sender = static_cast<int>(from);
      const auto receiver = static_cast<int>(to);
      tickets.emplace_back(sender, world[sender].send(channel, receiver, 1, &values[i], 8));
      tickets.emplace_back(receiver, world[receiver].recv(channel, sender, 1, &found[i], 8));
    }
  for (const auto& [rank, ticket] : tickets) ASSERT_EQ(world[rank].wait(ticket).code, Code::ok);
  EXPECT_EQ(found, values);
}

TEST_P(Conformance, ConnectIsIdempotent) {
  const auto world = connected(3);
  for (int round = 0; round < 3; ++round) {
    world->connect_all();
    exchange_all(*world, static_cast<uint64_t>(round));
  }
}

TEST_P(Conformance, BothEndsMayConnectAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const auto world = unconnected(2);
    world->run_threads([&](Rank& self) {
      const int other = 1 - self.index();
      const Status status = self.transport().connect(other, world->address(other), Deadline::after_us(20'000'000));
      ASSERT_TRUE(status.ok()) << status.message();
    });
    exchange_all(*world, 1);
  }
}

TEST_P(Conformance, AllRanksMayConnectToAllAtOnce) {
  const auto world = unconnected(8);
  world->run_threads([&](Rank& self) {
    for (int step = 1; step < world->size(); ++step) {
      const int other = (self.index() + step) % world->size();
      const Status status = self.transport().connect(other, world->address(other), Deadline::after_us(20'000'000));
      ASSERT_TRUE(status.ok()) << status.message();
    }
  });
  exchange_all(*world, 1);
}

// connect may run beside the owner's posts and polls.
TEST_P(Conformance, PeersConnectWhileOthersAreAtWork) {
  const auto world = unconnected(4);
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) ASSERT_TRUE(world->connect(from, to).ok());
  std::atomic<bool> connected_all{false};
  std::thread connecting([&] {
    world->connect_all();
    connected_all.store(true);
  });
  uint64_t match = 0;
  while (!connected_all.load() || match < 100) {
    ++match;
    uint64_t found = 0;
    const Ticket sent = (*world)[0].send(1, 1, match, &match, 8);
    ASSERT_EQ((*world)[1].wait((*world)[1].recv(1, 0, match, &found, 8)).code, Code::ok);
    ASSERT_EQ((*world)[0].wait(sent).code, Code::ok);
    ASSERT_EQ(found, match);
  }
  connecting.join();
  exchange_all(*world, 2);
}

TEST_P(Conformance, SixteenRanksExchangeWithAll) {
  const auto world = connected(16);
  for (uint64_t channel = 0; channel < 5; ++channel) exchange_all(*world, channel);
}

TEST_P(Conformance, AddressesOfPeersAreReachable) {
  const auto world = unconnected(2);
  EXPECT_EQ((*world)[0].transport().address(), (*world)[0].transport().address());
  EXPECT_NE(world->address(0), world->address(1));
  const Status status = (*world)[0].transport().reachable(world->address(1));
  EXPECT_TRUE(status.ok()) << status.message();
  const Status answer = (*world)[0].transport().answers(world->address(1), Deadline::after_us(1'000'000));
  EXPECT_TRUE(answer.ok()) << answer.message();
}

TEST_P(Conformance, AnAddressThatIsNoneIsRefusedWithAReason) {
  const auto world = unconnected(2);
  const std::string good = world->address(1);
  for (const std::string& address :
       {std::string(), std::string("x"), std::string(10'000, 'a'), std::string(good.size(), '\0'),
        good.substr(0, good.size() / 2), std::string("fake:999999999:1")}) {
    SCOPED_TRACE(::testing::PrintToString(address.substr(0, 40)));
    const Status reachable = (*world)[0].transport().reachable(address);
    EXPECT_FALSE(reachable.ok());
    EXPECT_NE(reachable.message(), "");
    const Status connected = (*world)[0].transport().connect(1, address, Deadline::after_us(100'000));
    EXPECT_FALSE(connected.ok());
    EXPECT_NE(connected.message(), "");
  }
  EXPECT_TRUE(world->connect(0, 1).ok()) << "a wrong attempt does no harm";
}

TEST_P(Conformance, AnotherRanksAddressIsNotTaken) {
  const auto world = unconnected(3);
  const Status status = (*world)[0].transport().connect(1, world->address(2), Deadline::after_us(5'000'000));
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message(), "");
}

TEST_P(Conformance, ToConnectToARankThatHasLeftIsAFailure) {
  const auto world = unconnected(2);
  world->leave(1);
  EXPECT_EQ(world->connect(0, 1).code(), Code::peer_failed);
}

size_t entries(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

size_t mapping_count() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  size_t lines = 0;
  for (int c = std::fgetc(maps); c != EOF; c = std::fgetc(maps)) lines += c == '\n';
  std::fclose(maps);
  return lines;
}

// Each world costs a sanitizer up to half a second.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kManyWorlds = 20;
#else
constexpr uint64_t kManyWorlds = 500;
#endif

// Two in each world.
TEST_P(Conformance, AThousandConnectionsLeaveNothingBehind) {
  const auto live_once = [&](uint64_t round) {
    const auto world = connected(2);
    ASSERT_TRUE((*world)[0].transport().allocate(100'000).ok());
    exchange_all(*world, round);
  };
  for (uint64_t round = 0; round < 20; ++round) live_once(round);
  const size_t descriptors = entries("/proc/self/fd");
  const size_t mappings = mapping_count();
  const size_t shared = entries("/dev/shm");
  for (uint64_t round = 0; round < kManyWorlds; ++round) live_once(round);
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_LE(mapping_count(), mappings + 50);  // the allocator's own come and go
  EXPECT_LE(entries("/dev/shm"), shared);
}

}  // namespace
}  // namespace tutti::internal::conformance
