#include "src/run/front.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstring>
#include <vector>

#include "src/run/children.h"
#include "src/run/options.h"
#include "src/run/say.h"
#include "src/run/signals.h"

namespace tutti::internal {

int Front::run() {
  while (true) {
    std::vector<pollfd> polls{{signals_.get(), POLLIN, 0}};
    if (input_) input_->add_polls(polls);
    poll(polls.data(), polls.size(), -1);
    while (const auto signal = read_signal(signals_.get())) {
      if (*signal != SIGCHLD) pass_on(*signal);
    }
    if (const auto status = reap()) return *status;
    if (input_) input_->serve();
  }
}

void Front::pass_on(int signal) {
  kill(supervisor_, signal);
  if (signal == SIGTSTP) raise(SIGSTOP);
  if (signal == SIGCONT && input_) input_->on_continue();
}

std::optional<int> Front::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != supervisor_) continue;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return clean_up_after(WTERMSIG(status));
  }
  return std::nullopt;
}

int Front::clean_up_after(int signal) {
  constexpr int64_t kLimitUs = 10'000'000;
  print_error(launcher_line(fmt::format("its supervising process {} was ended by signal {} ({}): ending the ranks",
                                        supervisor_, signal, strsignal(signal))));
  if (!kill_all_children(Deadline::after_us(kLimitUs)))
    print_error(launcher_line("some processes of the job do not end by SIGKILL"));
  return kExitSignalBase + signal;
}

}  // namespace tutti::internal
