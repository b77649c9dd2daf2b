// Random programs, polled from one thread and from a thread for each rank; and ranks that sleep.
#include "tests/transport/conformance_soak.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

Soak::GiveWindow windows_of(World& world) {
  return [&world](int rank, size_t bytes) {
    auto window = world[rank].transport().allocate(bytes);
    if (!window) throw std::runtime_error(window.status().message());
    return static_cast<std::byte*>(*window);
  };
}

TEST_P(Conformance, RandomProgramsPolledFromOneThreadAreRight) {
  std::mt19937_64 random = seeded();
  for (const int ranks : {2, 3, 5, 8}) {
    const auto world = connected(ranks);
    Soak soak(ranks, random, 600, windows_of(*world));
    std::vector<Soak::Run> runs;
    for (int rank = 0; rank < ranks; ++rank) runs.push_back(soak.run((*world)[rank]));
    const Deadline deadline = Deadline::after_us(60'000'000);
    const auto is_done = [](const Soak::Run& run) { return run.is_done(); };
    while (!std::all_of(runs.begin(), runs.end(), is_done)) {
      Soak::Run& run = runs[random() % runs.size()];
      if (!run.is_started()) run.step();
      if (random() % 4 == 0) (*world)[static_cast<int>(random() % runs.size())].poll();
      ASSERT_FALSE(deadline.passed()) << "requests do not complete";
    }
    world->settle();
    for (Soak::Run& run : runs) run.check();
    if (HasFailure()) return;
  }
}

TEST_P(Conformance, RandomProgramsOfRanksThatAreThreadsAreRight) {
  std::mt19937_64 random = seeded();
  for (const int ranks : {2, 4, 7}) {
    const auto world = connected(ranks);
    Soak soak(ranks, random, 600, windows_of(*world));
    std::atomic<int> finished{0};
    std::vector<Soak::Run> runs;
    for (int rank = 0; rank < ranks; ++rank) runs.push_back(soak.run((*world)[rank]));
    world->run_threads([&](Rank& self) {
      Soak::Run& run = runs[static_cast<size_t>(self.index())];
      while (!run.is_started()) {
        run.step();
        self.progress();
      }
      const Deadline deadline = Deadline::after_us(60'000'000);
      while (!run.is_done() && !deadline.passed()) self.progress();
      EXPECT_TRUE(run.is_done()) << "requests of rank " << self.index() << " do not complete";
      finished.fetch_add(1);
      while (finished.load() < ranks) self.progress();  // others may need our polls
    });
    world->settle();
    for (Soak::Run& run : runs) run.check();
    if (HasFailure()) return;
  }
}

// Waiting by idle loses nothing: a message wakes the sleeper, or it looks again soon.
TEST_P(Conformance, RanksThatSleepAreWoken) {
  const auto world = connected(2);
  world->run_threads([](Rank& self) {
    const int other = 1 - self.index();
    for (uint64_t round = 0; round < 300; ++round) {
      uint64_t found = 0;
      const Ticket received = self.recv(1, other, round, &found, 8);
      Ticket sent = 0;
      const auto send = [&] { sent = self.send(1, other, round, &round, 8); };
      if (self.index() == 0) send();
      const Deadline deadline = Deadline::after_us(20'000'000);
      while (!self.result(received)) {
        self.transport().idle(Deadline::after_us(2'000));
        self.poll();
        ASSERT_FALSE(deadline.passed());
      }
      if (self.index() == 1) send();
      ASSERT_EQ(self.wait(sent).code, Code::ok);
      ASSERT_EQ(found, round);
    }
  });
}

}  // namespace
}  // namespace tutti::internal::conformance
