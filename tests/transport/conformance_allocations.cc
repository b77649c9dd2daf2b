// The data path does not allocate in steady state: counted for each thread.
#include <array>
#include <vector>

#include "tests/allocations.h"
#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

constexpr std::array<size_t, 6> kSizes{8, 40, 48, 1000, 20'000, 200'000};

// One round of everything between three ranks, on memory that was made before: rank 0 sends each size to ranks 1 and 2
// from window and heap, some before the receives and some after; rank 0 reduces what the others send back.
class Round {
 public:
  explicit Round(World& world) : world_(world) {
    for (size_t i = 0; i < kSizes.size(); ++i) {
      auto window = world[0].transport().allocate(kSizes[i]);
      if (!window) throw std::runtime_error(window.status().message());
      sources_[2 * i] = static_cast<std::byte*>(*window);
      heaps_[i].resize(kSizes[i]);
      sources_[2 * i + 1] = heaps_[i].data();
    }
    for (auto& ends : targets_)
      for (auto& target : ends) target.resize(kSizes.back());
    result_.resize(kSizes.back());
  }

  void run() {
    ++round_;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const bool early = (i + round_) % 3 == 0;
      if (early) receive(i);
      const std::array<Endpoint, 2> to{{{1, match(i)}, {2, match(i)}}};
      post(0, [&](Transport& self) {
        return self.post_send({.channel = 1, .to = to, .data = sources_[i], .bytes = bytes(i), .ticket = 1});
      });
      if (!early) {
        for (int polls = 0; polls < 3; ++polls) poll();
        receive(i);
      }
    }
    finish();
    for (size_t i = 0; i < sources_.size(); ++i) {
      const bool early = (i + round_) % 2 == 0;
      if (early) reduce(i);
      for (const int rank : {1, 2}) send_back(rank, i);
      if (!early) reduce(i);
      finish();  // they share their destination
    }
  }

 private:
  static size_t bytes(size_t i) { return kSizes[i / 2]; }
  uint64_t match(size_t i) const { return round_ << 32 | i; }

  template <class PostOnce>
  void post(int rank, PostOnce post_once) {
    for (;;) {
      switch (post_once(world_[rank].transport())) {
        case Post::done: return;
        case Post::posted: ++missing_; return;
        case Post::later: poll(); continue;
        case Post::failed: throw std::runtime_error("a post failed");
      }
    }
  }
  void receive(size_t i) {
    for (const int rank : {1, 2})
      post(rank, [&](Transport& self) {
        return self.post_recv({.channel = 1,
                               .from = {0, match(i)},
                               .data = targets_[static_cast<size_t>(rank - 1)][i].data(),
                               .bytes = bytes(i),
                               .ticket = 2});
      });
  }
  void send_back(int rank, size_t i) {
    const Endpoint to{0, match(i)};
    post(rank, [&](Transport& self) {
      return self.post_send({.channel = 2,
                             .to = {&to, 1},
                             .data = targets_[static_cast<size_t>(rank - 1)][i].data(),
                             .bytes = bytes(i),
                             .ticket = 3});
    });
  }
  void reduce(size_t i) {
    const std::array<ReduceOperand, 3> operands{
        {{{1, match(i)}, nullptr}, {{}, sources_[i]}, {{2, match(i)}, nullptr}}};
    post(0, [&](Transport& self) {
      return self.post_reduce({.channel = 2,
                               .operands = operands,
                               .dst = result_.data(),
                               .element_count = bytes(i) / 8,
                               .reduction = kDigits,
                               .ticket = 4});
    });
  }
  void poll() {
    for (int rank = 0; rank < 3; ++rank) {
      std::array<Completion, 16> found;
      const size_t count = world_[rank].transport().poll(found);
      for (size_t i = 0; i < count; ++i)
        if (found[i].code != Code::ok) throw std::runtime_error("a request failed");
      missing_ -= count;
    }
  }
  void finish() {
    const Deadline deadline = Deadline::after_us(60'000'000);
    while (missing_ > 0) {
      poll();
      if (deadline.passed()) throw std::runtime_error("completions are missing");
    }
  }

  World& world_;
  uint64_t round_ = 0;
  size_t missing_ = 0;
  std::array<std::vector<std::byte>, kSizes.size()> heaps_;
  std::array<std::byte*, 2 * kSizes.size()> sources_{};
  std::array<std::array<std::vector<std::byte>, 2 * kSizes.size()>, 2> targets_;
  std::vector<std::byte> result_;
};

TEST_P(Conformance, PostsAndPollsAllocateNothingInSteadyState) {
  if (!GetParam()->is_allocation_free())
    GTEST_SKIP() << "posts and polls here are not all the transport's, or what is under way is random";
  const auto world = connected(3);
  Round round(*world);
  for (int i = 0; i < 100; ++i) round.run();
  const uint64_t before = tutti_test::allocations_of_this_thread();
  for (int i = 0; i < 300; ++i) round.run();
  EXPECT_EQ(tutti_test::allocations_of_this_thread() - before, 0u);
}

TEST(ConformanceAllocations, AreCounted) {
  const uint64_t before = tutti_test::allocations_of_this_thread();
  const std::vector<int> some(100);
  EXPECT_EQ(tutti_test::allocations_of_this_thread() - before, 1u);
}

}  // namespace
}  // namespace tutti::internal::conformance
