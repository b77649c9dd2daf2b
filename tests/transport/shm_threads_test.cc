// Ranks on threads that really run beside each other: for the thread sanitizer, and for chance.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/transport/shm_world.h"

namespace tutti::internal::testing {
namespace {

// Sum of u32, in wrapping arithmetic.
void add_u32(void* dst, const void* const* sources, int count, size_t elements, uint32_t) {
  for (size_t i = 0; i < elements; ++i) {
    uint32_t sum = 0;
    for (int s = 0; s < count; ++s) {
      uint32_t value = 0;
      std::memcpy(&value, static_cast<const std::byte*>(sources[s]) + 4 * i, 4);
      sum += value;
    }
    std::memcpy(static_cast<std::byte*>(dst) + 4 * i, &sum, 4);
  }
}

uint32_t value_of(int rank, uint64_t round, size_t i) {
  return static_cast<uint32_t>(rank) * 2654435761u + static_cast<uint32_t>(round * 40503 + i * 97);
}

// One rank of an endless exchange: in each round every rank sends a block to all others and reduces all blocks.
class Member {
 public:
  Member(ShmTransport& transport, int rank, int size, unsigned seed)
      : transport_(transport), rank_(rank), size_(size), random_(seed) {
    auto window = transport.allocate(kMost * 4);
    if (window) window_ = static_cast<uint32_t*>(*window);
  }

  // All ranks draw the same sizes from the same seed.
  void run(uint64_t rounds) {
    for (uint64_t round = 1; round <= rounds && !failed_; ++round) {
      constexpr std::array<size_t, 10> kElements{0, 2, 10, 11, 40, 55, 1000, 5000, 20000, kMost};
      const size_t elements = kElements[random_() % kElements.size()];
      const bool window = random_() % 2 == 0;
      exchange(round, elements, window);
    }
  }
  bool failed() const { return failed_; }

 private:
  static constexpr size_t kMost = 150000;

  void exchange(uint64_t round, size_t elements, bool window) {
    uint32_t* const own = window ? window_ : heap_.data();
    for (size_t i = 0; i < elements; ++i) own[i] = value_of(rank_, round, i);
    std::vector<Endpoint> to;
    std::vector<ReduceOperand> operands;
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) to.push_back({r, round});
      operands.push_back(r == rank_ ? ReduceOperand{{}, own} : ReduceOperand{{r, round}, nullptr});
    }
    const SendRequest send{.channel = 3, .to = to, .data = own, .bytes = elements * 4, .ticket = 1};
    Post post = Post::later;
    while ((post = transport_.post_send(send)) == Post::later) poll();
    pending_ += post == Post::posted;
    pending_ += transport_.post_reduce({.channel = 3,
                                        .operands = operands,
                                        .dst = result_.data(),
                                        .element_count = elements,
                                        .reduction = {add_u32, 4, 0},
                                        .ticket = 2}) == Post::posted;
    const Deadline deadline = Deadline::after_us(60'000'000);
    while (pending_ > 0 && !failed_) {
      if (poll() == 0) std::this_thread::yield();
      if (++idle_ % 5000 == 0) transport_.idle(deadline);
      failed_ |= deadline.passed();
    }
    for (size_t i = 0; i < elements && !failed_; ++i) {
      uint32_t expected = 0;
      for (int r = 0; r < size_; ++r) expected += value_of(r, round, i);
      failed_ |= expected != result_[i];
    }
    EXPECT_FALSE(failed_) << "rank " << rank_ << " round " << round << " elements " << elements << " window " << window;
  }
  size_t poll() {
    std::array<Completion, 4> done;
    const size_t count = transport_.poll(done);
    pending_ -= static_cast<int>(count);
    for (size_t i = 0; i < count; ++i) failed_ |= done[i].code != Code::ok;
    return count;
  }

  ShmTransport& transport_;
  int rank_;
  int size_;
  std::mt19937 random_;
  uint32_t* window_ = nullptr;
  std::vector<uint32_t> heap_ = std::vector<uint32_t>(kMost);
  std::vector<uint32_t> result_ = std::vector<uint32_t>(kMost);
  int pending_ = 0;
  uint64_t idle_ = 0;
  bool failed_ = false;
};

TEST(ShmThreads, RanksOnThreadsReduceWhatTheySendEachOther) {
  constexpr int kRanks = 4;
  const unsigned seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (const bool read_processes : {true, false}) {
    ShmWorld world(kRanks, read_processes);
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r)
      threads.emplace_back([&, r] {
        Member member(world.rank(r), r, kRanks, seed);
        member.run(100);
      });
    for (auto& thread : threads) thread.join();
  }
}

TEST(ShmThreads, EveryRankConnectsToEveryOtherAtOnce) {
  constexpr int kRanks = 6;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<ShmTransport>> ranks;
    std::vector<std::unique_ptr<WatchThread>> watchers;
    for (int r = 0; r < kRanks; ++r) {
      auto made = ShmTransport::create({.rank = r, .world_size = kRanks});
      ASSERT_TRUE(made.ok()) << made.status().message();
      ranks.push_back(std::move(*made));
      watchers.push_back(std::make_unique<WatchThread>(*ranks.back()));
    }
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r)
      threads.emplace_back([&, r] {
        for (int i = 1; i < kRanks; ++i) {
          const int peer = (r + i) % kRanks;
          const Status status = ranks[static_cast<size_t>(r)]->connect(
              peer, ranks[static_cast<size_t>(peer)]->address(), Deadline::after_us(10'000'000));
          EXPECT_TRUE(status.ok()) << status.message();
        }
      });
    for (auto& thread : threads) thread.join();
    watchers.clear();
    for (auto& rank : ranks) EXPECT_EQ(rank->take_failure().peer, -1);
  }
}

TEST(ShmThreads, ASleeperWakesForAMessage) {
  ShmWorld world(2);
  std::atomic<bool> received{false};
  int value = 0;
  ASSERT_EQ(world.rank(1).post_recv({.channel = 1, .from = {0, 1}, .data = &value, .bytes = 4, .ticket = 1}),
            Post::posted);
  std::thread sleeper([&] {
    std::array<Completion, 4> done;
    while (world.rank(1).poll(done) == 0) world.rank(1).idle(Deadline::after_us(1'000'000));
    received.store(true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(received.load());
  const int sent = 5;
  const Endpoint to{1, 1};
  EXPECT_EQ(world.rank(0).post_send({.channel = 1, .to = {&to, 1}, .data = &sent, .bytes = 4}), Post::done);
  sleeper.join();
  EXPECT_EQ(value, 5);
}

}  // namespace
}  // namespace tutti::internal::testing
