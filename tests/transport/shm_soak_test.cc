// Random programs on shared memory between real processes: bytes come from windows, by process_vm_readv and by streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <random>
#include <tuple>

#include "tests/transport/conformance_soak.h"
#include "tests/transport/shm_processes.h"

namespace tutti::internal::testing {
namespace {

using conformance::Rank;
using conformance::Soak;

// process_vm_readv fails with EPERM from now on in this process.
void forbid_reading() {
  const std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{filter.size(), const_cast<sock_filter*>(filter.data())};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

enum class Way : int { reads, streams, forbidden_for_one, forbidden_on_the_way };

class ShmSoak : public ::testing::TestWithParam<std::tuple<Way, int>> {};

void run_soak(ProcessRank& self, uint64_t seed, Way way) {
  self.connect_all();
  Rank rank(self.rank(), self.transport());
  const auto give_window = [&](int owner, size_t bytes) -> std::byte* {
    if (owner != self.rank()) return nullptr;
    auto window = self.transport().allocate(bytes);
    if (!window) throw std::runtime_error(window.status().message());
    return static_cast<std::byte*>(*window);
  };
  std::mt19937_64 random(seed);
  Soak soak(self.size(), random, 500, give_window);
  Soak::Run run = soak.run(rank);
  for (int steps = 0; !run.is_started(); ++steps) {
    if (way == Way::forbidden_on_the_way && self.rank() == 0 && steps == 100) forbid_reading();
    run.step();
    rank.progress();
  }
  const Deadline deadline = Deadline::after_us(60'000'000);
  while (!run.is_done() && !deadline.passed()) rank.progress();
  EXPECT_TRUE(run.is_done()) << "requests of rank " << self.rank() << " do not complete";
  self.mark(0);
  while (self.board().marks[0].load() < self.size() && !deadline.passed()) rank.progress();
  run.check();
}

TEST_P(ShmSoak, RandomProgramsAreRight) {
  const auto [way, ranks] = GetParam();
  const uint64_t seed = conformance::seeded()();
  const auto before = [way = way](int rank) {
    if (way == Way::forbidden_for_one && rank == 1) forbid_reading();
  };
  const auto body = [&, way = way](ProcessRank& self) {
    try {
      run_soak(self, seed, way);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  };
  EXPECT_THAT(run_processes(ranks, body, {.read_processes = way != Way::streams, .before = before}),
              ::testing::Each(0));
}
INSTANTIATE_TEST_SUITE_P(Ways, ShmSoak,
                         ::testing::Combine(::testing::Values(Way::reads, Way::streams, Way::forbidden_for_one,
                                                              Way::forbidden_on_the_way),
                                            ::testing::Values(2, 3, 6)));

}  // namespace
}  // namespace tutti::internal::testing
