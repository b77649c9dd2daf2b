#include "src/run/signals.h"

#include <sys/signalfd.h>

#include <cerrno>

namespace tutti::internal {
namespace {

sigset_t passed_on() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD})
    sigaddset(&set, signal);
  return set;
}

}  // namespace

Status block_signals(sigset_t& before) {
  // Whoever started us may have ignored it, and then no child's end could be waited for.
  signal(SIGCHLD, SIG_DFL);
  sigset_t set = passed_on();
  sigaddset(&set, SIGPIPE);
  if (sigprocmask(SIG_BLOCK, &set, &before) == 0) return Status();
  return Status::system(Code::internal, "sigprocmask", errno);
}

Result<UniqueFd> open_signals() {
  const sigset_t set = passed_on();
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Status::system(Code::out_of_resources, "signalfd", errno);
  return fd;
}

std::optional<int> read_signal(int fd) {
  signalfd_siginfo info{};
  if (read(fd, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace tutti::internal
