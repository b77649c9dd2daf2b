// One rank of a job that counts what repeated calls cost: allocations of the calling thread, and its system calls. Each
// operation runs a few times to make its plan, and then many times while everything is counted. Prints
// "counted allocations A syscalls S"; a rank that waits for a slow peer may offer its core, so sched_yield is not
// counted.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <tutti/tutti.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../allocations.h"

namespace {

volatile sig_atomic_t syscalls = 0;
volatile sig_atomic_t last_syscall = -1;

void on_syscall(int, siginfo_t* info, void* context) {
  if (info->si_syscall != SYS_sched_yield) {
    syscalls = syscalls + 1;
    last_syscall = info->si_syscall;
  }
#if defined(__x86_64__)
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = 0;
#endif
}

// From now on system calls of this thread are counted instead of made, but for the few by which it reports.
void count_syscalls() {
  struct sigaction action {};
  action.sa_sigaction = on_syscall;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("steady_worker: seccomp");
    std::exit(3);
  }
}

void check(tutti_status status) {
  if (status == TUTTI_OK) return;
  std::printf("status %s: %s\n", tutti_status_name(status), tutti_last_error());
  std::exit(static_cast<int>(status));
}

struct Memory {
  float* input;
  float* output;
  size_t count;
};

void run_async(tutti_group* world, const Memory& m) {
  tutti_work* work = nullptr;
  check(tutti_all_reduce_async(world, m.input, m.output, m.count, TUTTI_FLOAT32, TUTTI_SUM, nullptr, &work));
  check(tutti_work_wait(work));
  check(tutti_work_free(work));
}

void run_all(tutti_group* world, const Memory& m) {
  run_async(world, m);
  check(tutti_barrier(world, nullptr));
  check(tutti_broadcast(world, m.output, m.count, TUTTI_FLOAT32, 0, nullptr));
  check(tutti_all_reduce(world, m.input, m.output, m.count, TUTTI_FLOAT32, TUTTI_SUM, nullptr));
  check(tutti_reduce(world, m.input, m.output, m.count, TUTTI_FLOAT32, TUTTI_MAX, 1, nullptr));
  check(tutti_all_gather(world, m.input, m.output, m.count / 2, TUTTI_FLOAT32, nullptr));
  check(tutti_reduce_scatter(world, m.input, m.output, m.count / 2, TUTTI_FLOAT32, TUTTI_SUM, nullptr));
  check(tutti_all_to_all(world, m.input, m.output, m.count / 2, TUTTI_FLOAT32, nullptr));
  check(tutti_gather(world, m.input, m.output, m.count / 2, TUTTI_FLOAT32, 0, nullptr));
  check(tutti_scatter(world, m.input, m.output, m.count / 2, TUTTI_FLOAT32, 1, nullptr));
}

// The n-th processor that this process may run on; false when there are fewer.
bool bind_to(int n) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || n-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
  }
  return false;
}

}  // namespace

int main() {
  if (!bind_to(std::atoi(std::getenv("RANK")))) {
    std::printf("no core per rank\n");
    return 77;
  }
  tutti_group* world = nullptr;
  check(tutti_init(nullptr, &world));
  // Windows of any size; ordinary memory below the size at which the kernel copies it.
  std::vector<Memory> memories;
  for (size_t count : {size_t{2}, size_t{1024}, size_t{100'000}}) {
    void *in = nullptr, *out = nullptr;
    check(tutti_alloc(world, count * 4, &in));
    check(tutti_alloc(world, count * 4, &out));
    memories.push_back({static_cast<float*>(in), static_cast<float*>(out), count});
  }
  for (size_t count : {size_t{2}, size_t{1024}})
    memories.push_back({static_cast<float*>(std::calloc(count, 4)), static_cast<float*>(std::calloc(count, 4)), count});
  for (int i = 0; i < 20; ++i)
    for (const Memory& memory : memories) run_all(world, memory);
  // What is printed afterwards needs no memory: to get some can be a system call, which then is none.
  static char report[BUFSIZ];
  std::setvbuf(stdout, report, _IOFBF, sizeof report);
  count_syscalls();
  const uint64_t before = tutti_test::allocations_of_this_thread();
  for (int i = 0; i < 200; ++i)
    for (const Memory& memory : memories) run_all(world, memory);
  const auto allocations = static_cast<long>(tutti_test::allocations_of_this_thread() - before);
  std::printf("counted allocations %ld syscalls %d (last %d)\n", allocations, static_cast<int>(syscalls),
              static_cast<int>(last_syscall));
  std::fflush(stdout);
  syscall(SYS_exit_group, 0);
}
