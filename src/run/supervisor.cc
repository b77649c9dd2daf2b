#include "src/run/supervisor.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "src/core/store/handshake.h"
#include "src/core/store/listener.h"
#include "src/run/say.h"
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

Supervisor::Supervisor(const RunOptions& options, const Inherited& inherited, UniqueFd front, UniqueFd input)
    : options_(options), inherited_(inherited), front_(std::move(front)), input_(std::move(input)) {}

int Supervisor::run() {
  if (const Status status = prepare(); !status.ok()) {
    say(status.message());
    return kExitLauncher;
  }
  start_ranks();
  loop();
  return failure_.value_or(0);
}

void Supervisor::say(const std::string& message) {
  const std::string line = launcher_line(message);
  if (output_)
    output_->add_line(line);
  else
    print_error(line);
}

// ---- Before the ranks -------------------------------------------------------------------------------------------

Status Supervisor::prepare() {
  TUTTI_RETURN_IF_ERROR(become_subreaper());
  // Each rank takes a few descriptors here; the ranks themselves get the limit that we were given.
  const rlimit files{inherited_.files.rlim_max, inherited_.files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &files);
  auto signals = open_signals();
  TUTTI_RETURN_IF_ERROR(signals.status());
  signals_ = std::move(*signals);
  auto deaths = DeathWatch::create();
  TUTTI_RETURN_IF_ERROR(deaths.status());
  deaths_ = std::move(*deaths);
  if (options_.bind_cores) {
    auto cores = allowed_cores();
    TUTTI_RETURN_IF_ERROR(cores.status());
    cores_ = std::move(*cores);
  }
  if (options_.tag_output) {
    auto output = TaggedOutput::create(STDOUT_FILENO, STDERR_FILENO);
    TUTTI_RETURN_IF_ERROR(output.status());
    output_ = std::move(*output);
  }
  job_.size = options_.ranks;
  job_.secret = fresh_secret();
  return start_store();
}

Status Supervisor::start_store() {
  Listening listening = listen_on(0, Reach::loopback);
  TUTTI_RETURN_IF_ERROR(listening.status());
  job_.port = listening.listeners.port;
  StoreOptions options;
  options.size = job_.size;
  options.credentials = {job_.secret, fmt::format("port {}", job_.port)};
  auto server = StoreServer::start(std::move(options), std::move(listening.listeners));
  TUTTI_RETURN_IF_ERROR(server.status());
  store_ = std::move(*server);
  return Status();
}

void Supervisor::start_ranks() {
  job_end_ = Deadline::after_us(options_.timeout_us);
  const std::vector<CpuList> places = options_.bind_cores ? bindings(cores_, options_.ranks) : std::vector<CpuList>();
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail(kExitLauncher, fmt::format("cannot open /dev/null: {}", std::strerror(errno)));
  for (int rank = 0; rank < options_.ranks && stage_ == Stage::running; ++rank) {
    start_rank(rank, places, null.get());
    reap();  // one that failed already spares us the rest
  }
  // Rank 0 alone reads: when it has gone, whoever writes to it shall know.
  input_ = UniqueFd();
  dup2(null.get(), STDIN_FILENO);
}

Result<UniqueFd> Supervisor::output_of(int rank, TaggedOutput::Stream stream) {
  if (output_) return output_->add(rank, stream);
  return UniqueFd();
}

void Supervisor::start_rank(int rank, const std::vector<CpuList>& places, int null_fd) {
  const RankEnvironment environment(rank, job_, options_.environment);
  auto out = output_of(rank, TaggedOutput::Stream::out);
  auto err = output_of(rank, TaggedOutput::Stream::err);
  for (const Status& status : {out.status(), err.status()})
    if (!status.ok()) return fail(kExitLauncher, status.message());
  std::optional<CpuMask> mask;
  if (!places.empty()) mask.emplace(places[rank]);
  Start start;
  start.command = &options_.command;
  start.environment = environment.pointers();
  start.binding = mask ? &*mask : nullptr;
  start.inherited = &inherited_;
  start.in = rank == 0 ? input_.get() : null_fd;
  if (output_) start.out = out->get();
  if (output_) start.err = err->get();
  const Started started = start_process(start);
  if (started.pid < 0) {
    const StartFailure failure = explain(started, options_.command, environment.bytes());
    return fail(failure.exit_status, failure.message);
  }
  ranks_.push_back({started.pid, true});
  ++running_count_;
  if (const Status status = deaths_->add(started.pid); !status.ok()) fail(kExitLauncher, status.message());
}

// ---- While they run ---------------------------------------------------------------------------------------------

void Supervisor::loop() {
  while (true) {
    reap();
    if (output_) serve_output();
    advance();
    if (is_over()) return;
    wait_for_something();
    serve_signals();
  }
}

void Supervisor::serve_output() {
  output_->serve();
  if (const std::string fault = output_->take_fault(); !fault.empty()) fail(kExitLauncher, fault);
}

bool Supervisor::is_over() {
  if (has_children()) {
    if (!give_up_.passed()) return false;
    for (const pid_t child : list_children()) say(fmt::format("process {} does not end by SIGKILL", child));
    return true;
  }
  stage_end_ = Deadline::never();
  if (!output_) return true;
  output_->take_rest();
  return output_->is_flushed() || abandon_output_.passed();
}

void Supervisor::wait_for_something() {
  constexpr int kLongestWaitMs = 60'000;
  std::vector<pollfd> polls{{signals_.get(), POLLIN, 0}, {deaths_->fd(), POLLIN, 0}};
  if (front_) polls.push_back({front_.get(), POLLIN, 0});
  if (output_) output_->add_polls(polls);
  const Deadline deadline = std::min({stage_end_, job_end_, abandon_output_});
  poll(polls.data(), polls.size(), deadline.poll_ms(kLongestWaitMs));
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
  if (!WIFSIGNALED(status) || !passed_on_.contains(WTERMSIG(status)))
    say(fmt::format("rank {} (process {}) {}{}", rank - ranks_.begin(), pid, describe_end(status),
                    any_running() ? ": ending the others" : ""));
  enter(Stage::terminating);
}

// ---- The end ----------------------------------------------------------------------------------------------------

void Supervisor::fail(int status, const std::string& message, Stage stage) {
  say(message);
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
                                   static_cast<double>(options_.timeout_us) * 1e-6));
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
