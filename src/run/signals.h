// The signals that tutti-run passes on. They are blocked in both of its processes and read from a descriptor, so none
// can come at a bad moment, and one that was ignored from the start (nohup) stays ignored.
#pragma once

#include <signal.h>

#include <optional>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace tutti::internal {

// Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT and SIGCHLD, and SIGPIPE, which is then
// an error of write. `before` is the mask as it was.
Status block_signals(sigset_t& before);

// Gives those that arrive for this process, by read_signal. Only after block_signals.
Result<UniqueFd> open_signals();
std::optional<int> read_signal(int fd);

}  // namespace tutti::internal
