#include "src/run/rank_pipes.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

namespace tutti::internal {

Result<RankPipes> RankPipes::create() {
  RankPipes pipes;
  pipes.epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!pipes.epoll_) return Status::system(Code::out_of_resources, "epoll_create1", errno);
  return pipes;
}

Result<UniqueFd> RankPipes::add(int rank, Stream stream) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Status::system(Code::out_of_resources, fmt::format("pipe for the output of rank {}", rank), errno);
  auto source = std::make_unique<Source>(Source{UniqueFd(ends[0]), rank, stream});
  UniqueFd writer(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = source.get();
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, ends[0], &event) != 0)
    return Status::system(Code::out_of_resources, fmt::format("epoll_ctl for the output of rank {}", rank), errno);
  sources_.push_back(std::move(source));
  return writer;
}

void RankPipes::add_polls(std::vector<pollfd>& polls) const {
  if (!sources_.empty()) polls.push_back({epoll_.get(), POLLIN, 0});
}

void RankPipes::serve(OutputReceiver& receiver) {
  constexpr int kBatch = 64;
  epoll_event events[kBatch];
  const int count = receiver.is_full() ? 0 : epoll_wait(epoll_.get(), events, kBatch, 0);
  for (int i = 0; i < count; ++i) {
    auto& source = *static_cast<Source*>(events[i].data.ptr);
    if (read_once(source, receiver) == Got::end) close(source, receiver);
  }
}

void RankPipes::take_rest(OutputReceiver& receiver) {
  while (!sources_.empty() && !receiver.is_full()) {
    Source& source = *sources_.back();
    if (read_once(source, receiver) != Got::bytes) close(source, receiver);
  }
}

RankPipes::Got RankPipes::read_once(Source& source, OutputReceiver& receiver) {
  constexpr size_t kReadBytes = size_t{64} << 10;
  if (receiver.is_broken(source.stream)) return Got::end;
  char buffer[kReadBytes];
  const ssize_t bytes = read(source.fd.get(), buffer, sizeof buffer);
  if (bytes > 0) receiver.take(source.rank, source.stream, {buffer, static_cast<size_t>(bytes)});
  if (bytes > 0) return Got::bytes;
  return bytes < 0 && errno == EAGAIN ? Got::nothing : Got::end;
}

void RankPipes::close(Source& source, OutputReceiver& receiver) {
  receiver.finish(source.rank, source.stream);
  std::erase_if(sources_, [&source](const auto& one) { return one.get() == &source; });
}

}  // namespace tutti::internal
