// The first process of tutti-run, the one that the shell knows: passes signals and a terminal's input on to the
// supervisor, and ends with its status. Should the supervisor be killed, it ends what that has left.
#pragma once

#include <sys/types.h>

#include <optional>

#include "src/base/unique_fd.h"
#include "src/run/terminal_input.h"

namespace tutti::internal {

class Front {
 public:
  Front(pid_t supervisor, UniqueFd signals, std::optional<TerminalInput> input)
      : supervisor_(supervisor), signals_(std::move(signals)), input_(std::move(input)) {}
  // Returns the exit status when the supervisor has ended.
  int run();

 private:
  void pass_on(int signal);
  std::optional<int> reap();
  int clean_up_after(int signal);

  pid_t supervisor_;
  UniqueFd signals_;
  std::optional<TerminalInput> input_;
};

}  // namespace tutti::internal
