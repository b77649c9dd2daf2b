#include "src/run/printer.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace tutti::internal {
namespace {

constexpr size_t kFullQueue = size_t{4} << 20;  // then no more is read, and the ranks wait

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

bool Printer::Sink::is_full() const { return queue.size() - written >= kFullQueue; }

Printer::Printer(int out_fd, int err_fd, bool tag) : tag_(tag) {
  sinks_[0].fd = out_fd;
  sinks_[1].fd = err_fd;
  err_sink_ = is_same_file(out_fd, err_fd) ? 0 : 1;
}

void Printer::take(int rank, Stream stream, std::string_view bytes) {
  Sink& sink = sinks_[sink_of(stream)];
  if (sink.broken) return;
  if (!tag_) {
    sink.queue.append(bytes);
    return;
  }
  const auto [tagger, is_new] = taggers_.try_emplace({rank, stream}, rank);
  tagger->second.feed(bytes.data(), bytes.size(), sink.queue);
}

void Printer::finish(int rank, Stream stream) {
  const auto tagger = taggers_.find({rank, stream});
  if (tagger == taggers_.end()) return;
  Sink& sink = sinks_[sink_of(stream)];
  if (!sink.broken) tagger->second.finish(sink.queue);
  taggers_.erase(tagger);
}

bool Printer::is_full() const { return sinks_[0].is_full() || sinks_[1].is_full(); }

void Printer::add_polls(std::vector<pollfd>& polls) const {
  for (const Sink& sink : sinks_)
    if (!sink.is_empty()) polls.push_back({sink.fd, POLLOUT, 0});
}

void Printer::flush() {
  for (Sink& sink : sinks_) flush(sink);
}

void Printer::flush(Sink& sink) {
  // Where poll says that a pipe takes more it takes this much at least, without blocking.
  while (!sink.is_empty() && takes_more(sink.fd)) {
    const size_t piece = std::min<size_t>(sink.queue.size() - sink.written, PIPE_BUF);
    const ssize_t bytes = write(sink.fd, sink.queue.data() + sink.written, piece);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (bytes < 0) {
      // A reader that has left is no fault: the ranks learn it by SIGPIPE.
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

}  // namespace tutti::internal
