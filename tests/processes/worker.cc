// One rank of the jobs that tests hurt. Joins by the environment, prints "joined", does what its arguments say until
// something fails, and prints and returns the status: "status peer_failed rank 2: ...".
//
//   worker loop OPERATION BYTES [TIMEOUT_MS]   the operation again and again; checks each result
//   worker once OPERATION BYTES                the operation once, then leaves
//   worker leave_early RANK                    rank RANK leaves after one barrier, the others go on
//   worker exit_early RANK                     rank RANK calls exit(0) without leaving
//   worker fork_child                          forks a child that uses the handle, and lives on while the parent is
//                                              killed
//   worker signals COUNT                       operations under a storm of timer signals
//   worker repeat COUNT                        COUNT small all_reduces, then leaves
//   worker wait SECONDS                        rank 0 comes late to a barrier; the others print the seconds of
//                                              processor that they took to wait for it
//   worker first_contact SECONDS               a barrier with a limit of SECONDS, a second after joining
//   worker no_descriptors                      the limit of descriptors is 0 when it leaves
//   worker no_threads                          as a user who may have no more processes; joining must fail
//   worker small_files BYTES                   no file may be longer when it joins
//   worker end HOW                             ends with status 5, without leaving: main_returns, a_thread_exits,
//                                              a_static_leaves (in its destructor), the_middle (of an operation)
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <tutti/tutti.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Rank {
  tutti_group* world = nullptr;
  int rank = 0;
  int size = 0;
};

[[noreturn]] void end_with(tutti_status status) {
  std::printf("status %s rank %d: %s\n", tutti_status_name(status), tutti_last_failed_rank(), tutti_last_error());
  std::fflush(stdout);
  // To a rank whose own time is not over yet, the end of this one would be the failure.
  if (status == TUTTI_TIMEOUT) sleep(2);
  _exit(static_cast<int>(status));
}

void check(tutti_status status) {
  if (status != TUTTI_OK) end_with(status);
}

// One operation on int32 in memory of `bytes` per rank, its result checked.
class Operation {
 public:
  Operation(const Rank& rank, const std::string& name, size_t bytes)
      : rank_(rank), name_(name), count_(bytes / 4), input_(count_ * blocks_in()), output_(count_ * blocks_out()) {
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = value(rank.rank, i);
  }

  void run(const tutti_options* options) {
    check(call(options));
    check_result();
  }

 private:
  size_t all() const { return static_cast<size_t>(rank_.size); }
  size_t blocks_in() const {
    return name_ == "scatter" || name_ == "reduce_scatter" || name_ == "all_to_all" ? all() : 1;
  }
  size_t blocks_out() const { return name_ == "gather" || name_ == "all_gather" || name_ == "all_to_all" ? all() : 1; }
  static int32_t value(int rank, size_t i) { return static_cast<int32_t>(i * 7 + static_cast<size_t>(rank) * 13 + 1); }

  tutti_status call(const tutti_options* options) {
    const void* in = input_.data();
    void* out = output_.data();
    if (name_ == "barrier") return tutti_barrier(rank_.world, options);
    if (name_ == "broadcast") {
      if (rank_.rank == 0) output_ = input_;
      return tutti_broadcast(rank_.world, output_.data(), count_, TUTTI_INT32, 0, options);
    }
    if (name_ == "reduce") return tutti_reduce(rank_.world, in, out, count_, TUTTI_INT32, TUTTI_SUM, 0, options);
    if (name_ == "all_reduce") return tutti_all_reduce(rank_.world, in, out, count_, TUTTI_INT32, TUTTI_SUM, options);
    if (name_ == "reduce_scatter")
      return tutti_reduce_scatter(rank_.world, in, out, count_, TUTTI_INT32, TUTTI_SUM, options);
    if (name_ == "scatter") return tutti_scatter(rank_.world, in, out, count_, TUTTI_INT32, 0, options);
    if (name_ == "gather") return tutti_gather(rank_.world, in, out, count_, TUTTI_INT32, 0, options);
    if (name_ == "all_gather") return tutti_all_gather(rank_.world, in, out, count_, TUTTI_INT32, options);
    if (name_ == "all_to_all") return tutti_all_to_all(rank_.world, in, out, count_, TUTTI_INT32, options);
    std::fprintf(stderr, "worker: no operation %s\n", name_.c_str());
    _exit(99);
  }

  // The first and the last element, where this rank has a result: enough to see stale or foreign data.
  void check_result() const {
    if (count_ == 0 || name_ == "barrier") return;
    if (rank_.rank != 0 && (name_ == "reduce" || name_ == "gather")) return;
    for (size_t i : {size_t{0}, count_ - 1})
      if (output_[i] != expected(i)) {
        std::printf("wrong: element %zu is %d, not %d\n", i, output_[i], expected(i));
        std::fflush(stdout);
        _exit(98);
      }
  }

  int32_t expected(size_t i) const {
    const size_t own = static_cast<size_t>(rank_.rank) * count_ + i;
    if (name_ == "broadcast" || name_ == "gather" || name_ == "all_gather") return value(0, i);
    if (name_ == "scatter" || name_ == "all_to_all") return value(0, own);
    int32_t sum = 0;
    for (int r = 0; r < rank_.size; ++r) sum += value(r, name_ == "reduce_scatter" ? own : i);
    return sum;
  }

  const Rank& rank_;
  std::string name_;
  size_t count_;
  std::vector<int32_t> input_, output_;
};

void loop(const Rank& rank, const std::string& name, size_t bytes, int64_t timeout_us) {
  Operation operation(rank, name, bytes);
  tutti_options options = TUTTI_OPTIONS;
  options.timeout_us = timeout_us;
  for (int i = 0;; ++i) {
    operation.run(&options);
    if (i > 0) continue;
    std::printf("started\n");
    std::fflush(stdout);
  }
}

void go_early(const Rank& rank, int who, bool orderly) {
  check(tutti_barrier(rank.world, nullptr));
  if (rank.rank == who) {
    if (orderly) check(tutti_group_free(rank.world));
    std::exit(0);
  }
  while (true) check(tutti_barrier(rank.world, nullptr));
}

// The child's use of the handle must fail at once; its long life must not hide the parent's death.
void fork_child(const Rank& rank) {
  if (rank.rank == 1 && fork() == 0) {
    const tutti_status status = tutti_barrier(rank.world, nullptr);
    std::printf("child %s\n", tutti_status_name(status));
    std::fflush(stdout);
    sleep(4);
    _exit(0);
  }
  loop(rank, "all_reduce", 1024, 0);
}

void signals(const Rank& rank, int count) {
  Operation small(rank, "all_reduce", 64), large(rank, "all_to_all", 1 << 20);
  for (int i = 0; i < count; ++i) {
    small.run(nullptr);
    large.run(nullptr);
  }
}

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void wait_for_the_late(const Rank& rank, int seconds) {
  check(tutti_barrier(rank.world, nullptr));
  if (rank.rank == 0) sleep(static_cast<unsigned>(seconds));
  const double before = processor_seconds();
  check(tutti_barrier(rank.world, nullptr));
  std::printf("took %.3f\n", processor_seconds() - before);
}

// The world of a program that leaves it to its statics.
struct Statically {
  tutti_group* world = nullptr;
  ~Statically() { tutti_group_free(world); }
} statically;

void end_by(const Rank& rank, const std::string& how) {
  // All have come here before one ends. Who ends while others still pass it breaks it for them, which is no matter.
  tutti_barrier(rank.world, nullptr);
  if (how == "the_middle") {
    tutti_work* work = nullptr;
    static_cast<void>(tutti_barrier_async(rank.world, nullptr, &work));
    std::exit(5);
  }
  tutti_barrier(rank.world, nullptr);
  if (how == "a_static_leaves") statically.world = rank.world;
  if (how == "a_thread_exits") std::thread([] { std::exit(5); }).join();
}

void meet_first(const Rank& rank, int64_t timeout_seconds) {
  sleep(1);
  tutti_options options = TUTTI_OPTIONS;
  options.timeout_us = timeout_seconds * 1'000'000;
  check(tutti_barrier(rank.world, &options));
}

void limit(__rlimit_resource which, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(which, &both);
}

// Nothing of the caller's is changed by what fails.
void become_a_user_without_threads() {
  if (setresuid(64999, 64999, 64999) != 0) _exit(77);
  limit(RLIMIT_NPROC, 0);
  sigset_t before{}, after{};  // pthread_sigmask sets a part of them
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  tutti_group* world = nullptr;
  const tutti_status status = tutti_init(nullptr, &world);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  std::printf("signals %s\n", std::memcmp(&before, &after, sizeof before) == 0 ? "as before" : "changed");
  end_with(status);
}

void start_signal_storm() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART: system calls return EINTR
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto argument = [&](int i) { return std::string(argc > i ? argv[i] : "0"); };
  if (mode == "signals") start_signal_storm();
  if (mode == "no_threads") become_a_user_without_threads();
  if (mode == "small_files") limit(RLIMIT_FSIZE, std::stoul(argument(2)));
  Rank rank;
  check(tutti_init(nullptr, &rank.world));
  rank.rank = tutti_group_rank(rank.world);
  rank.size = tutti_group_size(rank.world);
  std::printf("joined\n");
  std::fflush(stdout);
  if (mode == "loop") loop(rank, argument(2), std::stoul(argument(3)), std::stol(argument(4)) * 1000);
  if (mode == "once") Operation(rank, argument(2), std::stoul(argument(3))).run(nullptr);
  if (mode == "leave_early") go_early(rank, std::stoi(argument(2)), true);
  if (mode == "exit_early") go_early(rank, std::stoi(argument(2)), false);
  if (mode == "fork_child") fork_child(rank);
  if (mode == "signals") signals(rank, std::stoi(argument(2)));
  if (mode == "repeat")
    for (int i = 0; i < std::stoi(argument(2)); ++i) Operation(rank, "all_reduce", 8).run(nullptr);
  if (mode == "wait") wait_for_the_late(rank, std::stoi(argument(2)));
  if (mode == "first_contact") meet_first(rank, std::stol(argument(2)));
  if (mode == "no_descriptors") {
    check(tutti_barrier(rank.world, nullptr));
    limit(RLIMIT_NOFILE, 0);
  }
  if (mode == "end") {
    end_by(rank, argument(2));
    return 5;
  }
  check(tutti_group_free(rank.world));
  std::printf("status ok\n");
  return 0;
}
