#include "src/run/supervisor.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/run/options.h"
#include "src/run/signals.h"

namespace tutti::internal {
namespace {

constexpr int64_t kGraceUs = 2'000'000;       // between SIGTERM and SIGKILL
constexpr int64_t kKillRepeatUs = 20'000;     // SIGKILL again, to what was started meanwhile
constexpr int64_t kKillLimitUs = 10'000'000;  // then a process is beyond us (in a dead file system, say)

// The exit status of a shell for a process that ended so.
int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? kExitSignalBase + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string describe_end(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("ended with status {}", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  return fmt::format("was ended by signal {} ({}){}", signal, strsignal(signal),
                     WCOREDUMP(wait_status) ? ", core dumped" : "");
}

}  // namespace

Supervisor::Supervisor(const Task& task, const Inherited& inherited, UniqueFd front, UniqueFd input, Outside& outside)
    : task_(task), inherited_(inherited), front_(std::move(front)), input_(std::move(input)), outside_(outside) {}

int Supervisor::run() {
  if (const Status status = prepare(); !status.ok()) {
    outside_.fail(kExitLauncher, status.message(), 0);
    finish_output();
    return kExitLauncher;
  }
  start_ranks();
  loop();
  return failure_.value_or(0);
}

// Where there is no job to wait for.
void Supervisor::finish_output() {
  constexpr int kPauseMs = 100;
  for (const Deadline limit = Deadline::after_us(kGraceUs); !outside_.is_flushed() && !limit.passed();) {
    std::vector<pollfd> polls;
    outside_.add_polls(polls);
    poll(polls.data(), polls.size(), kPauseMs);
    outside_.serve();
  }
}

// ---- While they run ---------------------------------------------------------------------------------------------

void Supervisor::loop() {
  while (true) {
    reap();
    serve_outside();
    advance();
    if (is_over()) return;
    wait_for_something();
    serve_signals();
  }
}

void Supervisor::serve_outside() {
  for (const Order& order : outside_.serve()) {
    switch (order.kind) {
      case Order::Kind::pass_on: pass_on(order.number); break;
      case Order::Kind::end: enter(Stage::terminating); break;
      case Order::Kind::fail: fail(order.number, order.message); break;
      case Order::Kind::kill: abandon_output_ = Deadline::after_us(0); enter(Stage::killing);
    }
  }
}

bool Supervisor::is_over() {
  if (has_children()) {
    if (!give_up_.passed()) return false;
    for (const pid_t child : list_children()) outside_.say(fmt::format("process {} does not end by SIGKILL", child));
    return true;
  }
  stage_end_ = Deadline::never();
  outside_.take_rest();
  return outside_.is_flushed() || abandon_output_.passed();
}

void Supervisor::wait_for_something() {
  constexpr int kLongestWaitMs = 60'000;
  std::vector<pollfd> polls{{signals_.get(), POLLIN, 0}, {deaths_->fd(), POLLIN, 0}};
  if (front_) polls.push_back({front_.get(), POLLIN, 0});
  outside_.add_polls(polls);
  poll(polls.data(), polls.size(),
       std::min({outside_.wake_at().poll_ms(kLongestWaitMs), stage_end_.poll_ms(kLongestWaitMs),
                 job_end_.poll_ms(kLongestWaitMs), abandon_output_.poll_ms(kLongestWaitMs),
                 give_up_.poll_ms(kLongestWaitMs)}));
  if (front_ && polls[2].revents != 0) {
    front_ = UniqueFd();
    abandon_output_ = Deadline::after_us(kGraceUs);
    fail(kExitSignalBase + SIGKILL, "its first process was killed: ending the ranks", Stage::killing);
  }
}

void Supervisor::serve_signals() {
  while (const auto signal = read_signal(signals_.get()))
    if (*signal != SIGCHLD) pass_on(*signal);
}

void Supervisor::pass_on(int signal) {
  passed_on_.insert(signal);
  switch (signal) {
    // For programs that know what they mean by it; helpers that a rank has started would die.
    case SIGUSR1:
    case SIGUSR2:
      for (const Rank& rank : ranks_)
        if (rank.is_running) kill(rank.pid, signal);
      return;
    // SIGTSTP itself does nothing in a session without a terminal.
    case SIGTSTP: return signal_ranks(SIGSTOP);
    case SIGCONT: return signal_ranks(SIGCONT);
    default:
      signal_ranks(signal);
      if (any_running()) return;
      abandon_output_ = Deadline::after_us(0);
      enter(Stage::terminating);
  }
}

void Supervisor::reap() {
  int status = 0;
  bool has_reaped = false;
  const auto take = [&](pid_t pid) {
    if (waitpid(pid, &status, WNOHANG) != pid) return;
    has_reaped = true;
    on_end(pid, status);
  };
  for (const pid_t pid : deaths_->take()) take(pid);
  for (siginfo_t info{}; waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0; info = {})
    take(info.si_pid);
  // What an ended process has left may have come to us only now.
  if (has_reaped && stage_ == Stage::terminating) signal_leftovers(SIGTERM);
}

void Supervisor::on_end(pid_t pid, int status) {
  const auto rank = std::ranges::find_if(ranks_, [pid](const Rank& one) { return one.is_running && one.pid == pid; });
  if (rank == ranks_.end()) return;
  rank->is_running = false;
  --running_count_;
  deaths_->remove(pid);
  if (status == 0 || failure_) return;
  failure_ = exit_status_of(status);
  const bool is_known = WIFSIGNALED(status) && passed_on_.contains(WTERMSIG(status));  // to who sent the signal
  outside_.fail(*failure_,
                is_known ? ""
                         : fmt::format("rank {} (process {}) {}", task_.first_rank + (rank - ranks_.begin()), pid,
                                       describe_end(status)),
                running_count_);
  enter(Stage::terminating);
}

// ---- The end ----------------------------------------------------------------------------------------------------

void Supervisor::fail(int status, const std::string& message, Stage stage) {
  outside_.fail(status, message, 0);
  if (!failure_) failure_ = status;
  job_end_ = Deadline::never();
  enter(stage);
}

void Supervisor::enter(Stage stage) {
  if (stage <= stage_) return;
  stage_ = stage;
  switch (stage) {
    case Stage::running: return;
    case Stage::lingering: stage_end_ = Deadline::after_us(kGraceUs); return;
    case Stage::terminating:
      stage_end_ = Deadline::after_us(kGraceUs);
      signal_ranks(SIGTERM);
      signal_ranks(SIGCONT);  // a stopped one could not act on it
      signal_leftovers(SIGTERM);
      return;
    case Stage::killing:
      stage_end_ = Deadline::after_us(0);
      job_end_ = Deadline::never();
      give_up_ = Deadline::after_us(kKillLimitUs);
  }
}

void Supervisor::advance() {
  if (stage_ < Stage::terminating && job_end_.passed()) {
    abandon_output_ = Deadline::after_us(kGraceUs);
    fail(kExitTimeout, fmt::format("the job is not done after --timeout {} s: ending it",
                                   static_cast<double>(task_.timeout_us) * 1e-6));
    return;
  }
  if (stage_ == Stage::running && !any_running() && has_children()) enter(Stage::lingering);
  if (!stage_end_.passed()) return;
  if (stage_ == Stage::lingering) return enter(Stage::terminating);
  if (stage_ == Stage::terminating) return enter(Stage::killing);
  signal_ranks(SIGKILL);
  signal_leftovers(SIGKILL);
  stage_end_ = Deadline::after_us(kKillRepeatUs);
}

// Their numbers are theirs, and their groups', until they are reaped.
void Supervisor::signal_ranks(int signal) const {
  for (const Rank& rank : ranks_)
    if (rank.is_running) kill(-rank.pid, signal);
}

// What ranks have started and left behind, which is ours now.
void Supervisor::signal_leftovers(int signal) {
  if (!has_children()) return;
  for (const pid_t child : list_children()) {
    const bool is_rank =
        std::ranges::any_of(ranks_, [child](const Rank& rank) { return rank.is_running && rank.pid == child; });
    if (is_rank || (signal == SIGTERM && !told_.insert(child).second)) continue;
    kill(child, signal);
  }
}

}  // namespace tutti::internal
