// tutti-run: starts a program as the ranks of one job. Two processes do it: the first one stands before the shell
// (front.h), the second one holds the job: here (job_here.h), over hosts (head.h), or as the agent of another host's
// tutti-run (agent.h). Each of them ends the job should the other be killed.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "src/run/agent.h"
#include "src/run/children.h"
#include "src/run/front.h"
#include "src/run/head.h"
#include "src/run/job_here.h"
#include "src/run/options.h"
#include "src/run/say.h"
#include "src/run/signals.h"
#include "src/run/terminal_input.h"

namespace {

using namespace tutti::internal;

// Descriptors of ours must not get the standard ones' numbers.
void open_missing_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
}

// What the two processes hold of each other, made before they part.
struct Halves {
  Inherited inherited;
  UniqueFd front_alive;  // the front's end, which nothing is ever written to
  UniqueFd front_gone;   // the supervisor's end: readable when the front has gone
  std::optional<TerminalInput> terminal;
  UniqueFd input;  // rank 0's standard input
};

Status make_halves(Halves& halves) {
  if (getrlimit(RLIMIT_NOFILE, &halves.inherited.files) != 0)
    return Status::system(Code::internal, "getrlimit(RLIMIT_NOFILE)", errno);
  TUTTI_RETURN_IF_ERROR(block_signals(halves.inherited.mask));
  TUTTI_RETURN_IF_ERROR(become_subreaper());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::system(Code::out_of_resources, "pipe", errno);
  halves.front_gone = UniqueFd(ends[0]);
  halves.front_alive = UniqueFd(ends[1]);
  if (isatty(STDIN_FILENO)) {
    auto terminal = TerminalInput::create(STDIN_FILENO, halves.input);
    TUTTI_RETURN_IF_ERROR(terminal.status());
    halves.terminal = std::move(*terminal);
    return Status();
  }
  halves.input = UniqueFd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return halves.input ? Status() : Status::system(Code::out_of_resources, "dup of standard input", errno);
}

int supervise(bool is_agent, const RunOptions& options, Halves halves) {
  halves.front_alive = UniqueFd();
  halves.terminal.reset();
  setsid();
  // Its own name: who kills tutti-run by name does not take both.
  prctl(PR_SET_NAME, "tutti-warden");
  if (const Status status = become_subreaper(); !status.ok()) {
    print_error(launcher_line(status.message()));
    return kExitLauncher;
  }
  // Each rank takes a few descriptors here; the ranks themselves get the limit that we were given.
  const rlimit files{halves.inherited.files.rlim_max, halves.inherited.files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &files);
  if (is_agent) return run_agent(halves.inherited, std::move(halves.front_gone), std::move(halves.input));
  if (options.hosts.empty())
    return run_job_here(options, halves.inherited, std::move(halves.front_gone), std::move(halves.input));
  return Head(options, halves.inherited, std::move(halves.front_gone), std::move(halves.input)).run();
}

int stand_before(pid_t supervisor, Halves halves) {
  auto signals = open_signals();
  if (!signals) {
    print_error(launcher_line(signals.status().message()));
    return kExitLauncher;
  }
  halves.front_gone = UniqueFd();
  halves.input = UniqueFd();
  if (!halves.terminal) {
    // Rank 0 alone reads it.
    const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (null) dup2(null.get(), STDIN_FILENO);
  }
  return Front(supervisor, std::move(*signals), std::move(halves.terminal)).run();
}

}  // namespace

int main(int argc, char** argv) {
  RunOptions options;
  const bool is_agent = argc == 2 && std::string_view(argv[1]) == kAgentOption;
  if (!is_agent)
    if (const auto status = parse_options(argc, argv, options)) return *status;
  open_missing_standard_descriptors();
  Halves halves;
  if (const Status status = make_halves(halves); !status.ok()) {
    print_error(launcher_line(status.message()));
    return kExitLauncher;
  }
  const pid_t supervisor = fork();
  if (supervisor < 0) {
    print_error(launcher_line(Status::system(Code::out_of_resources, "fork", errno).message()));
    return kExitLauncher;
  }
  return supervisor == 0 ? supervise(is_agent, options, std::move(halves))
                         : stand_before(supervisor, std::move(halves));
}
