#include "src/run/link.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <tutti/tutti.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::internal {
namespace {

constexpr std::string_view kGreeting = "\ntutti-run agent: ";
constexpr int kWordsInSilence = 4;

// Both ends must be the same: what they say is not kept compatible.
std::string version() {
  return fmt::format("version {}.{}.{}, protocol 1", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH);
}

void make_non_blocking(const UniqueFd& fd) { fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

}  // namespace

Link::Link(Side side, UniqueFd in, UniqueFd out, int64_t silence_us)
    : in_(std::move(in)),
      out_(std::move(out)),
      silence_us_(silence_us),
      greeted_(side == Side::agent),
      heard_us_(now_us()),
      spoke_us_(now_us()) {
  make_non_blocking(in_);
  make_non_blocking(out_);
  if (side == Side::agent) queue_ = fmt::format("{}{}\n", kGreeting, version());
}

void Link::put(const LinkMessage& message) {
  if (out_) queue_ += encode(message);
}

std::optional<LinkMessage> Link::next() {
  if (!greeted_) return std::nullopt;
  auto message = arrived_.next();
  while (message && message->type == LinkMessage::Type::alive) message = arrived_.next();
  if (arrived_.is_broken()) end("what came is not of this tutti-run");
  return message;
}

void Link::add_polls(std::vector<pollfd>& polls, bool may_read) const {
  // Without events poll still tells that the other end has gone.
  if (open_) polls.push_back({in_.get(), static_cast<short>(may_read ? POLLIN : 0), 0});
  if (!is_flushed()) polls.push_back({out_.get(), POLLOUT, 0});
}

void Link::serve(bool may_read) {
  if (open_ && may_read) read();
  const int64_t now = now_us();
  if (!may_read) heard_us_ = now;
  if (open_ && now - heard_us_ >= silence_us_)
    end(fmt::format("{} {} s", greeted_ ? "it has said nothing for" : "tutti-run has not begun there within",
                    static_cast<double>(silence_us_) * 1e-6));
  if (out_ && greeted_ && is_flushed() && now - spoke_us_ >= silence_us_ / kWordsInSilence) put(LinkMessage{});
  if (out_) write();
}

Deadline Link::wake_at() const {
  if (!open_) return Deadline::never();
  const int64_t now = now_us();
  const int64_t due = std::min(heard_us_ + silence_us_, spoke_us_ + silence_us_ / kWordsInSilence);
  return Deadline::after_us(std::max<int64_t>(due - now, 0));
}

void Link::read() {
  constexpr int kReadsAtOnce = 16;
  char buffer[size_t{64} << 10];
  for (int i = 0; i < kReadsAtOnce && open_; ++i) {
    const ssize_t bytes = ::read(in_.get(), buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes < 0) return end(std::strerror(errno));
    if (bytes == 0) return end_of_input();
    heard_us_ = now_us();
    arrived_.add({buffer, static_cast<size_t>(bytes)});
    if (!greeted_) take_greeting();
  }
}

void Link::take_greeting() {
  constexpr size_t kMostNoise = size_t{1} << 20;
  const std::string_view bytes = arrived_.bytes();
  const size_t begin = bytes.find(kGreeting);
  if (begin == std::string::npos) {
    if (bytes.size() > kMostNoise) arrived_.take(bytes.size() - kGreeting.size());
    return;
  }
  const size_t from = begin + kGreeting.size(), until = bytes.find('\n', from);
  if (until == std::string::npos) return;
  const std::string theirs(bytes.substr(from, until - from));
  arrived_.take(until + 1);
  greeted_ = true;
  if (theirs != version()) end(fmt::format("tutti-run there is {}, and here {}", theirs, version()));
}

void Link::write() {
  while (written_ < queue_.size()) {
    const ssize_t bytes = ::write(out_.get(), queue_.data() + written_, queue_.size() - written_);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) break;
    // What the other end has said before it went is still to be read.
    if (bytes < 0) return close_out();
    written_ += static_cast<size_t>(bytes);
    spoke_us_ = now_us();
  }
  if (is_flushed() || written_ > kFullQueue) {
    queue_.erase(0, written_);
    written_ = 0;
  }
}

void Link::end_of_input() {
  closed_ = open_;
  end("it was closed");
}

void Link::end(std::string why) {
  open_ = false;
  if (why_.empty()) why_ = std::move(why);
}

}  // namespace tutti::internal
