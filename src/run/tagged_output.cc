#include "src/run/tagged_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace tutti::internal {
namespace {

constexpr size_t kFullQueue = size_t{4} << 20;  // then no more is read, and the ranks wait
constexpr size_t kReadBytes = size_t{64} << 10;

bool is_same_file(int a, int b) {
  struct stat first {};
  struct stat second {};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

bool takes_more(int fd) {
  pollfd poll_fd{fd, POLLOUT, 0};
  return poll(&poll_fd, 1, 0) == 1;
}

}  // namespace

LineTagger::LineTagger(int rank) : tag_(fmt::format("[{}] ", rank)) {}

void LineTagger::feed(const char* bytes, size_t count, std::string& out) {
  while (count > 0) {
    const size_t room = kLongestLine - partial_.size();
    const size_t seen = count < room ? count : room;
    const char* newline = static_cast<const char*>(std::memchr(bytes, '\n', seen));
    const size_t taken = newline ? static_cast<size_t>(newline - bytes) : seen;
    partial_.append(bytes, taken);
    const size_t used = taken + (newline ? 1 : 0);
    bytes += used;
    count -= used;
    if (newline || (partial_.size() == kLongestLine && count > 0)) {
      out.append(tag_).append(partial_).append("\n");
      partial_.clear();
      // A full line whose own end follows is not continued.
      if (!newline && *bytes == '\n') {
        ++bytes;
        --count;
      }
    }
  }
}

void LineTagger::finish(std::string& out) {
  if (partial_.empty()) return;
  out.append(tag_).append(partial_).append("\n");
  partial_.clear();
}

bool TaggedOutput::Sink::is_full() const { return queue.size() - written >= kFullQueue; }

Result<TaggedOutput> TaggedOutput::create(int out_fd, int err_fd) {
  TaggedOutput output;
  output.epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!output.epoll_) return Status::system(Code::out_of_resources, "epoll_create1", errno);
  output.sinks_[0].fd = out_fd;
  output.sinks_[1].fd = err_fd;
  output.err_sink_ = is_same_file(out_fd, err_fd) ? 0 : 1;
  return output;
}

Result<UniqueFd> TaggedOutput::add(int rank, Stream stream) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Status::system(Code::out_of_resources, fmt::format("pipe for the output of rank {}", rank), errno);
  auto source = std::make_unique<Source>(Source{UniqueFd(ends[0]), 0, LineTagger(rank)});
  UniqueFd writer(ends[1]);
  source->sink = stream == Stream::out ? 0 : err_sink_;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = source.get();
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, ends[0], &event) != 0)
    return Status::system(Code::out_of_resources, fmt::format("epoll_ctl for the output of rank {}", rank), errno);
  sources_.push_back(std::move(source));
  return writer;
}

bool TaggedOutput::is_full() const { return sinks_[0].is_full() || sinks_[1].is_full(); }

void TaggedOutput::add_polls(std::vector<pollfd>& polls) const {
  if (!sources_.empty() && !is_full()) polls.push_back({epoll_.get(), POLLIN, 0});
  for (const Sink& sink : sinks_)
    if (!sink.is_empty()) polls.push_back({sink.fd, POLLOUT, 0});
}

void TaggedOutput::serve() {
  constexpr int kBatch = 64;
  epoll_event events[kBatch];
  const int count = is_full() ? 0 : epoll_wait(epoll_.get(), events, kBatch, 0);
  for (int i = 0; i < count; ++i) {
    auto& source = *static_cast<Source*>(events[i].data.ptr);
    if (read_once(source) == Got::end) close(source);
  }
  for (Sink& sink : sinks_) flush(sink);
}

void TaggedOutput::take_rest() {
  while (!sources_.empty() && !is_full()) {
    Source& source = *sources_.back();
    if (read_once(source) != Got::bytes) close(source);
  }
  for (Sink& sink : sinks_) flush(sink);
}

TaggedOutput::Got TaggedOutput::read_once(Source& source) {
  Sink& sink = sinks_[source.sink];
  if (sink.broken) return Got::end;
  char buffer[kReadBytes];
  const ssize_t bytes = read(source.fd.get(), buffer, sizeof buffer);
  if (bytes > 0) source.tagger.feed(buffer, static_cast<size_t>(bytes), sink.queue);
  if (bytes > 0) return Got::bytes;
  return bytes < 0 && errno == EAGAIN ? Got::nothing : Got::end;
}

void TaggedOutput::close(Source& source) {
  source.tagger.finish(sinks_[source.sink].queue);
  std::erase_if(sources_, [&source](const auto& one) { return one.get() == &source; });
}

void TaggedOutput::flush(Sink& sink) {
  // Where poll says that a pipe takes more it takes this much at least, without blocking.
  while (!sink.is_empty() && takes_more(sink.fd)) {
    const size_t piece = std::min<size_t>(sink.queue.size() - sink.written, PIPE_BUF);
    const ssize_t bytes = write(sink.fd, sink.queue.data() + sink.written, piece);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (bytes < 0) {
      // A reader that has left is no fault: the ranks learn it as they would have without tags, by SIGPIPE.
      if (errno != EPIPE) fault_ = fmt::format("cannot write the ranks' output: {}", std::strerror(errno));
      sink.broken = true;
      sink.written = sink.queue.size();
      break;
    }
    sink.written += static_cast<size_t>(bytes);
  }
  if (sink.is_empty() || sink.written > kFullQueue) {
    sink.queue.erase(0, sink.written);
    sink.written = 0;
  }
}

bool TaggedOutput::is_flushed() const { return sinks_[0].is_empty() && sinks_[1].is_empty(); }

std::string TaggedOutput::take_fault() { return std::exchange(fault_, ""); }

}  // namespace tutti::internal
