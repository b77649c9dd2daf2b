// Ranks in processes of their own: what the kernel allows and forbids between them, and what happens when one goes.
#include "tests/transport/shm_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "transport/shm/copy.h"

namespace tutti::internal::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::vector<std::byte> pattern(size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 131 + seed * 17 + (i >> 8)) & 0xff);
  return data;
}

// Makes the system call fail with `error` from now on in this process.
void forbid(long call, int error) {
  const std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{filter.size(), const_cast<sock_filter*>(filter.data())};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

constexpr std::array<size_t, 9> kSizes{0, 1, 40, 41, 220, 5000, 16385, 300001, (5 << 20) + 3};

// Every rank sends every size from window and heap to the next rank, and checks what the one before sent.
void exchange_all_sizes(ProcessRank& self) {
  self.connect_all();
  const int next = (self.rank() + 1) % self.size();
  const int previous = (self.rank() + self.size() - 1) % self.size();
  uint64_t match = 0;
  for (const size_t bytes : kSizes)
    for (const bool window : {false, true}) {
      ++match;
      auto own = pattern(bytes, static_cast<unsigned>(self.rank()));
      void* data = own.data();
      if (window && bytes > 0) {
        auto memory = self.transport().allocate(bytes);
        ASSERT_TRUE(memory.ok()) << memory.status().message();
        data = std::memcpy(*memory, own.data(), bytes);
      }
      std::vector<std::byte> found(bytes);
      int pending = 0;
      pending += self.send(next, match, data, bytes) == Post::posted;
      pending += self.recv(previous, match, found.data(), bytes) == Post::posted;
      for (; pending > 0; --pending) EXPECT_EQ(self.wait().code, Code::ok);
      EXPECT_TRUE(found == pattern(bytes, static_cast<unsigned>(previous))) << bytes << " bytes, window " << window;
    }
  self.mark(0);
  while (self.board().marks[0].load() < self.size()) self.poll();  // others may still be reading
}

TEST(ShmProcesses, ExchangeMessagesOfAllSizes) { EXPECT_THAT(run_processes(3, exchange_all_sizes), Each(0)); }

TEST(ShmProcesses, ExchangeWithoutReadingEachOther) {
  EXPECT_THAT(run_processes(3, exchange_all_sizes, {.read_processes = false, .before = {}}), Each(0));
}

class ForbiddenRead : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(ForbiddenRead, OnAllRanksOrOneIsMadeUpForByStreams) {
  const auto [error, ranks] = GetParam();
  const auto before = [&](int rank) {
    if (rank < ranks) forbid(SYS_process_vm_readv, error);
  };
  EXPECT_THAT(run_processes(3, exchange_all_sizes, {.before = before}), Each(0));
}
INSTANTIATE_TEST_SUITE_P(Errors, ForbiddenRead,
                         ::testing::Combine(::testing::Values(EPERM, ENOSYS), ::testing::Values(1, 3)));

TEST(ShmProcesses, ReadForbiddenAfterTheProbeTurnsIntoAStream) {
  const auto statuses = run_processes(2, [](ProcessRank& self) {
    self.connect_all();
    self.mark(0);
    self.await(0, 2);
    if (self.rank() == 1) forbid(SYS_process_vm_readv, EPERM);
    exchange_all_sizes(self);
  });
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmProcesses, AKilledPeerIsReportedOnceEvenIfItsChildLives) {
  const auto statuses = run_processes(2, [](ProcessRank& self) {
    self.connect_all();
    self.mark(0);
    self.await(0, 2);
    if (self.rank() == 1) {
      const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));  // no atfork handlers
      if (child == 0) {
        while (self.board().marks[1].load() == 0) usleep(1000);
        _exit(0);
      }
      kill(getpid(), SIGKILL);
    }
    const PeerFailure failure = self.await_failure();
    EXPECT_EQ(failure.peer, 1);
    EXPECT_NE(failure.reason, "");
    usleep(50000);
    EXPECT_EQ(self.transport().take_failure().peer, -1);
    int value = 0;
    EXPECT_EQ(self.send(1, 1, &value, 4), Post::failed);
    EXPECT_EQ(self.recv(1, 1, &value, 4), Post::failed);
    self.mark(1);
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_EQ(WTERMSIG(statuses[1]), SIGKILL);
}

TEST(ShmProcesses, AStoppedPeerIsNoFailure) {
  const auto statuses = run_processes(2, [](ProcessRank& self) {
    self.connect_all();
    self.mark(self.rank());
    if (self.rank() == 1) {
      self.board().marks[5].store(getpid());
      int value = 0;
      self.recv_and_wait(0, 1, &value, 4);
      EXPECT_EQ(value, 9);
      return;
    }
    self.await(5, 1);
    self.await(1, 1);
    const pid_t peer = self.board().marks[5].load();
    kill(peer, SIGSTOP);
    usleep(50000);
    EXPECT_EQ(self.transport().take_failure().peer, -1);
    kill(peer, SIGCONT);
    const int value = 9;
    self.send_and_wait(1, 1, &value, 4);
  });
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmProcesses, WhatWasSentBeforeAGoodbyeIsStillReceived) {
  const auto statuses = run_processes(2, [](ProcessRank& self) {
    self.connect_all();
    self.mark(0);
    self.await(0, 2);
    const auto data = pattern(3000, 1);
    if (self.rank() == 1) {
      self.send_and_wait(0, 1, data.data(), data.size());
      self.leave();
      self.mark(1);
      return;
    }
    self.await(1, 1);
    usleep(50000);
    EXPECT_EQ(self.transport().take_failure().peer, -1);
    std::vector<std::byte> found(data.size());
    self.recv_and_wait(1, 1, found.data(), found.size());
    EXPECT_EQ(found, data);
    EXPECT_EQ(self.recv(1, 2, found.data(), found.size()), Post::failed);
    const PeerFailure failure = self.transport().take_failure();
    EXPECT_EQ(failure.peer, 1);
    EXPECT_THAT(failure.reason, HasSubstr("left"));
  });
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmProcesses, AGoodbyeThatLeavesAReceiveOpenIsAFailure) {
  const auto statuses = run_processes(2, [](ProcessRank& self) {
    self.connect_all();
    if (self.rank() == 1) {
      self.await(0, 1);
      return;
    }
    int value = 0;
    EXPECT_EQ(self.recv(1, 1, &value, 4), Post::posted);
    self.mark(0);
    const PeerFailure failure = self.await_failure();
    EXPECT_EQ(failure.peer, 1);
    EXPECT_THAT(failure.reason, HasSubstr("left the world in the middle"));
  });
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmProcesses, LeaveNothingInDevShm) {
  const auto names = [] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) found.insert(entry.path());
    return found;
  };
  const auto before = names();
  const auto statuses = run_processes(2, [&](ProcessRank& self) {
    self.connect_all();
    EXPECT_TRUE(self.transport().allocate(1 << 20).ok());
    EXPECT_EQ(names(), before);
    self.mark(0);
    self.await(0, 2);
    if (!::testing::Test::HasFailure()) kill(getpid(), SIGKILL);
  });
  for (const int status : statuses) EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(names(), before);
}

TEST(ShmProcesses, SignalsInterruptNothing) {
  const auto before = [](int) {
    struct sigaction action {};
    action.sa_handler = [](int) {};  // no SA_RESTART
    sigaction(SIGALRM, &action, nullptr);
    const itimerval interval{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &interval, nullptr);
  };
  EXPECT_THAT(run_processes(3, exchange_all_sizes, {.before = before}), Each(0));
}

class Namespaces : public ::testing::TestWithParam<std::tuple<int, int>> {};

// PID namespaces: the process that unshares stays outside, its children are inside.
void enter_namespace(int flags) {
  if (unshare(flags) != 0) _exit(77);
  if ((flags & CLONE_NEWPID) == 0) return;
  const pid_t inside = fork();
  if (inside == 0) return;
  int status = 0;
  waitpid(inside, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

TEST_P(Namespaces, OfOneRankOrAllDoNotPart) {
  const auto [flags, ranks] = GetParam();
  const auto before = [&](int rank) {
    if (rank < ranks) enter_namespace(flags);
  };
  const auto statuses = run_processes(2, exchange_all_sizes, {.before = before});
  if (WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 77)
    GTEST_SKIP() << "unshare(" << flags << ") is not allowed here";
  EXPECT_THAT(statuses, Each(0));
}
INSTANTIATE_TEST_SUITE_P(Kinds, Namespaces,
                         ::testing::Combine(::testing::Values(CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNS, CLONE_NEWUTS,
                                                              CLONE_NEWIPC),
                                            ::testing::Values(1, 2)));

TEST(ShmProcesses, AnotherNetworkNamespaceIsNotReachable) {
  const auto before = [](int rank) {
    if (rank == 0) enter_namespace(CLONE_NEWNET);
  };
  const auto statuses = run_processes(2,
                                      [](ProcessRank& self) {
                                        const Status status =
                                            self.transport().reachable(self.address_of(1 - self.rank()));
                                        EXPECT_EQ(status.code(), Code::unsupported);
                                        EXPECT_THAT(status.message(), HasSubstr("another network namespace"));
                                        EXPECT_EQ(self.connect(1 - self.rank()).code(), Code::unsupported);
                                      },
                                      {.before = before});
  if (WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 77) GTEST_SKIP() << "unshare(CLONE_NEWNET) is not allowed";
  EXPECT_THAT(statuses, Each(0));
}

class Limits : public ::testing::TestWithParam<std::tuple<int, rlim_t>> {};

TEST_P(Limits, AreLivedWith) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (std::get<0>(GetParam()) == RLIMIT_AS) GTEST_SKIP() << "a sanitizer needs the address space itself";
#endif
  const auto before = [&](int) {
    const auto [which, value] = GetParam();
    const rlimit limit{value, value};
    ASSERT_EQ(setrlimit(static_cast<__rlimit_resource>(which), &limit), 0);
  };
  EXPECT_THAT(run_processes(4, exchange_all_sizes, {.before = before}), Each(0));
}
INSTANTIATE_TEST_SUITE_P(Kinds, Limits,
                         ::testing::Values(std::tuple{RLIMIT_AS, rlim_t{4} << 30},
                                           std::tuple{RLIMIT_FSIZE, rlim_t{256} << 20},
                                           std::tuple{RLIMIT_NOFILE, rlim_t{32}},
                                           std::tuple{RLIMIT_MEMLOCK, rlim_t{0}}));

TEST(ShmProcesses, SixteenRanksLiveWithin64Descriptors) {
  const auto before = [](int) {
    const rlimit limit{64, 64};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  };
  EXPECT_THAT(run_processes(16, exchange_all_sizes, {.before = before}), Each(0));
}

TEST(ShmProcesses, AnotherUserIsRefusedWithTheReason) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a rank as another user";
  const auto before = [](int rank) {
    if (rank == 1) {
      ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
    }
  };
  const auto statuses = run_processes(
      2,
      [](ProcessRank& self) {
        const Status status = self.connect(1 - self.rank());
        EXPECT_EQ(status.code(), Code::unsupported);
        EXPECT_THAT(status.message(),
                    HasSubstr(self.rank() == 0 ? "user id is 0, 65534 expected" : "user id is 65534, 0 expected"));
        self.mark(0);
        self.await(0, 2);
      },
      {.before = before});
  EXPECT_THAT(statuses, Each(0));
}

// Where the system gives huge pages, a large window lies in them, on both sides.
TEST(ShmProcesses, LargeWindowsLieInHugePages) {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string text;
  std::getline(setting, text);
  if (text.find("[never]") != std::string::npos || text.find("[deny]") != std::string::npos || text.empty())
    GTEST_SKIP() << "shmem_enabled: " << text;
  const auto huge_bytes = [] {
    std::ifstream maps("/proc/self/smaps");
    size_t kib = 0;
    for (std::string line; std::getline(maps, line);)
      if (line.starts_with("ShmemPmdMapped:")) kib += std::stoul(line.substr(15));
    return kib * 1024;
  };
  const auto statuses = run_processes(2, [&](ProcessRank& self) {
    self.connect_all();
    constexpr size_t kBytes = size_t{16} << 20;
    auto window = self.transport().allocate(kBytes);
    ASSERT_TRUE(window.ok()) << window.status().message();
    EXPECT_GE(huge_bytes(), kBytes);
    std::vector<std::byte> found(kBytes);
    int pending = self.send(1 - self.rank(), 1, *window, kBytes) == Post::posted;
    pending += self.recv(1 - self.rank(), 1, found.data(), kBytes) == Post::posted;
    for (; pending > 0; --pending) EXPECT_EQ(self.wait().code, Code::ok);
    EXPECT_GE(huge_bytes(), 2 * kBytes);
    self.mark(0);
    while (self.board().marks[0].load() < 2) self.poll();
  });
  EXPECT_THAT(statuses, Each(0));
}

size_t locked_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmLck:")) return std::stoul(line.substr(6)) * 1024;
  return 0;
}

TEST(ShmProcesses, ThatLockAllTheirMemoryDoNotLockTheRegions) {
  const auto before = [](int) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) _exit(77);
  };
  const auto statuses = run_processes(2,
                                      [](ProcessRank& self) {
                                        exchange_all_sizes(self);
                                        EXPECT_LT(locked_bytes(), size_t{1} << 30);
                                      },
                                      {.before = before});
  if (WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 77) GTEST_SKIP() << "mlockall is not allowed here";
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmProcesses, SendFromMemoryOfEveryKind) {
  const auto statuses = run_processes(2, [](ProcessRank& self) {
    self.connect_all();
    static const std::vector<std::byte> expected = pattern(100000, 3);
    constexpr size_t kBytes = 100000;
    uint64_t match = 0;
    const auto transfer = [&](const void* data) {
      ++match;
      if (self.rank() == 0) return self.send_and_wait(1, match, data, kBytes);
      std::vector<std::byte> found(kBytes + 1);
      self.recv_and_wait(0, match, found.data() + 1, kBytes);
      EXPECT_EQ(std::memcmp(found.data() + 1, expected.data(), kBytes), 0) << "transfer " << match;
    };
    std::FILE* const file = std::tmpfile();
    ASSERT_EQ(std::fwrite(expected.data(), 1, kBytes, file), kBytes);
    std::fflush(file);
    const auto map = [&](int protection, int flags) {
      return mmap(nullptr, kBytes, protection, flags, fileno(file), 0);
    };
    std::vector<std::byte> shifted(kBytes + 64);
    std::memcpy(shifted.data() + 7, expected.data(), kBytes);
    std::array<std::byte, kBytes> stack;
    std::memcpy(stack.data(), expected.data(), kBytes);
    transfer(map(PROT_READ, MAP_SHARED));
    transfer(map(PROT_READ, MAP_PRIVATE));
    transfer(map(PROT_READ | PROT_WRITE, MAP_SHARED));
    transfer(shifted.data() + 7);
    transfer(stack.data());
    std::fclose(file);
  });
  EXPECT_THAT(statuses, Each(0));
}

}  // namespace
}  // namespace tutti::internal::testing
