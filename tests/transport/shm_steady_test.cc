// The data path in steady state: no allocation, and no system call but the kernel's large copies. Counted, not timed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>

#include "tests/allocations.h"
#include "tests/transport/shm_processes.h"

namespace tutti::internal::testing {
namespace {

using ::testing::Each;

void keep_first(void* dst, const void* const* sources, int, size_t elements, uint32_t) {
  std::memcpy(dst, sources[0], elements * 4);
}

// Both ranks send each other a message and receive or reduce the other's.
class Round {
 public:
  explicit Round(ProcessRank& self) : self_(self) {
    auto window = self.transport().allocate(kMost);
    EXPECT_TRUE(window.ok());
    window_ = *window;
  }

  void run(size_t bytes, bool window, bool reduce) {
    void* const data = window ? window_ : heap_.data();
    ++match_;
    const int other = 1 - self_.rank();
    const Endpoint to{other, match_};
    int pending = self_.transport().post_send(
                      {.channel = 1, .to = {&to, 1}, .data = data, .bytes = bytes, .ticket = 1}) == Post::posted;
    if (reduce) {
      const std::array<ReduceOperand, 2> operands{{{{other, match_}, nullptr}, {{}, data}}};
      pending += self_.transport().post_reduce({.channel = 1,
                                                .operands = operands,
                                                .dst = into_.data(),
                                                .element_count = bytes / 4,
                                                .reduction = {keep_first, 4, 0},
                                                .ticket = 2}) == Post::posted;
    } else {
      pending += self_.recv(other, match_, into_.data(), bytes) == Post::posted;
    }
    std::array<Completion, 4> done;
    while (pending > 0) pending -= static_cast<int>(self_.transport().poll(done));
  }
  void all(int rounds) {
    for (int i = 0; i < rounds; ++i)
      for (const size_t bytes : {8u, 40u, 400u, 4096u, 32768u})
        for (const bool window : {false, true})
          for (const bool reduce : {false, true}) run(bytes, window, reduce);
    for (int i = 0; i < rounds; ++i)
      for (const bool reduce : {false, true}) run(kMost, true, reduce);
  }

 private:
  static constexpr size_t kMost = size_t{2} << 20;
  ProcessRank& self_;
  void* window_ = nullptr;
  std::vector<std::byte> heap_ = std::vector<std::byte>(kMost);
  std::vector<std::byte> into_ = std::vector<std::byte>(kMost);
  uint64_t match_ = 0;
};

TEST(ShmSteady, NothingIsAllocated) {
  const auto statuses = run_processes(2, [](ProcessRank& self) {
    self.connect_all();
    Round round(self);
    round.all(30);
    const uint64_t before = tutti_test::allocations_of_this_thread();
    round.all(100);
    EXPECT_EQ(tutti_test::allocations_of_this_thread(), before);
  });
  EXPECT_THAT(statuses, Each(0));
}

// From here on any system call of this thread but the end ends the process.
void forbid_system_calls() {
  const std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  }};
  const sock_fprog program{filter.size(), const_cast<sock_filter*>(filter.data())};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(ShmSteady, NoSystemCallIsMade) {
  const auto statuses = run_processes(2, [](ProcessRank& self) {
    self.connect_all();
    Round round(self);
    round.all(30);
    forbid_system_calls();
    round.all(30);
    // The other may still need the last acknowledgement to be taken; leaving would take system calls.
    self.mark(0);
    while (self.board().marks[0].load() < 2) self.poll();
    syscall(SYS_exit_group, ::testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_THAT(statuses, Each(0));
}

}  // namespace
}  // namespace tutti::internal::testing
