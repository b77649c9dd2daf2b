#include "src/run/terminal_input.h"

#include <unistd.h>

#include <cerrno>

namespace tutti::internal {

Result<TerminalInput> TerminalInput::create(int terminal_fd, UniqueFd& reader) {
  auto pipe = FeedPipe::create(reader);
  TUTTI_RETURN_IF_ERROR(pipe.status());
  TerminalInput input;
  input.terminal_ = terminal_fd;
  input.pipe_ = std::move(*pipe);
  return input;
}

void TerminalInput::add_polls(std::vector<pollfd>& polls) const {
  if (wants_input()) polls.push_back({terminal_, POLLIN, 0});
  pipe_.add_polls(polls);
}

void TerminalInput::serve() {
  if (wants_input()) read_terminal();
  pipe_.serve();
}

void TerminalInput::read_terminal() {
  pollfd poll_fd{terminal_, POLLIN, 0};
  if (poll(&poll_fd, 1, 0) != 1) return;
  if (tcgetpgrp(terminal_) != getpgrp()) {
    may_be_foreground_ = false;
    return;
  }
  char buffer[4096];
  const ssize_t bytes = read(terminal_, buffer, sizeof buffer);
  if (bytes > 0)
    pipe_.feed({buffer, static_cast<size_t>(bytes)});
  else if (bytes == 0 || (errno != EAGAIN && errno != EINTR))
    pipe_.end();
}

}  // namespace tutti::internal
