#include "src/run/terminal_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tutti::internal {

Result<TerminalInput> TerminalInput::create(int terminal_fd, UniqueFd& reader) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::system(Code::out_of_resources, "pipe for standard input", errno);
  reader = UniqueFd(ends[0]);
  TerminalInput input;
  input.terminal_ = terminal_fd;
  input.pipe_ = UniqueFd(ends[1]);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  return input;
}

void TerminalInput::add_polls(std::vector<pollfd>& polls) const {
  if (wants_input()) polls.push_back({terminal_, POLLIN, 0});
  // Without events poll still tells that the reader has gone.
  if (pipe_) polls.push_back({pipe_.get(), static_cast<short>(pending_.empty() ? 0 : POLLOUT), 0});
}

void TerminalInput::serve() {
  if (wants_input()) read_terminal();
  if (pipe_) write_pipe();
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
    pending_.assign(buffer, static_cast<size_t>(bytes));
  else if (bytes == 0 || (errno != EAGAIN && errno != EINTR))
    pipe_ = UniqueFd();
}

void TerminalInput::write_pipe() {
  pollfd poll_fd{pipe_.get(), POLLOUT, 0};
  if (poll(&poll_fd, 1, 0) != 1) return;
  if (poll_fd.revents & POLLERR) {
    pipe_ = UniqueFd();
    return;
  }
  if (pending_.empty()) return;
  const ssize_t bytes = write(pipe_.get(), pending_.data(), pending_.size());
  if (bytes > 0) pending_.erase(0, static_cast<size_t>(bytes));
}

}  // namespace tutti::internal
