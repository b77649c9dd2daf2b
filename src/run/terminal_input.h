// Rank 0's standard input where it is a terminal. Ranks have no controlling terminal, and must not take input from the
// shell while tutti-run is in the background; so the process that the shell knows reads, and passes on by a pipe.
#pragma once

#include <poll.h>

#include <vector>

#include "src/base/status.h"
#include "src/run/feed_pipe.h"

namespace tutti::internal {

class TerminalInput {
 public:
  // Gives the rank's end in `reader`.
  static Result<TerminalInput> create(int terminal_fd, UniqueFd& reader);

  void add_polls(std::vector<pollfd>& polls) const;
  // Does what can be done without waiting.
  void serve();
  // To be asked again after a SIGCONT: whether input is ours depends on the foreground.
  void on_continue() { may_be_foreground_ = true; }

 private:
  bool wants_input() const { return pipe_.is_open() && pipe_.is_empty() && may_be_foreground_; }
  void read_terminal();

  int terminal_ = -1;
  FeedPipe pipe_;
  bool may_be_foreground_ = true;
};

}  // namespace tutti::internal
