#include "src/run/feed_pipe.h"

#include <fcntl.h>

#include <cerrno>

namespace tutti::internal {

Result<FeedPipe> FeedPipe::create(UniqueFd& reader) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::system(Code::out_of_resources, "pipe for standard input", errno);
  reader = UniqueFd(ends[0]);
  FeedPipe pipe;
  pipe.pipe_ = UniqueFd(ends[1]);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  return pipe;
}

void FeedPipe::add_polls(std::vector<pollfd>& polls) const {
  // Without events poll still tells that the reader has gone.
  if (pipe_) polls.push_back({pipe_.get(), static_cast<short>(pending_.empty() ? 0 : POLLOUT), 0});
}

void FeedPipe::serve() {
  if (!pipe_) return;
  pollfd poll_fd{pipe_.get(), POLLOUT, 0};
  if (poll(&poll_fd, 1, 0) == 1) {
    if (poll_fd.revents & POLLERR) return void(pipe_ = UniqueFd());
    const ssize_t bytes = pending_.empty() ? 0 : write(pipe_.get(), pending_.data(), pending_.size());
    if (bytes > 0) pending_.erase(0, static_cast<size_t>(bytes));
  }
  if (ending_ && pending_.empty()) pipe_ = UniqueFd();
}

}  // namespace tutti::internal
