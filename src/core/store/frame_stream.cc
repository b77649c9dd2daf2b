#include "src/core/store/frame_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace tutti::internal {

bool FrameReader::read_available(int fd, size_t most) {
  constexpr size_t kChunkBytes = 64 << 10;
  if (taken_ > 0) {
    buffer_.erase(0, taken_);
    taken_ = 0;
  }
  while (buffer_.size() < most) {
    const size_t before = buffer_.size();
    const size_t wanted = std::min(kChunkBytes, most - before);
    buffer_.resize(before + wanted);
    const ssize_t got = recv(fd, buffer_.data() + before, wanted, 0);
    const int error = errno;
    buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) continue;
    if (got == 0) {
      why_ = "the connection was closed";
      return false;
    }
    if (error == EINTR) continue;
    if (error == EAGAIN || error == EWOULDBLOCK) return true;
    why_ = std::generic_category().message(error);
    return false;
  }
  return true;
}

std::optional<Message> FrameReader::next() {
  if (broken_ || bytes().size() < kLengthBytes) return std::nullopt;
  const auto length = frame_length(bytes());
  if (length && bytes().size() < kLengthBytes + *length) return std::nullopt;
  std::optional<Message> message;
  if (length) message = decode(bytes().substr(kLengthBytes, *length));
  broken_ = !message;
  if (message) take(kLengthBytes + *length);
  return message;
}

bool FrameWriter::flush(int fd) {
  while (!frames_.empty()) {
    const std::string& frame = *frames_.front().frame;
    const ssize_t sent = send(fd, frame.data() + written_, frame.size() - written_, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    written_ += static_cast<size_t>(sent);
    if (written_ == frame.size()) {
      if (frames_.front().is_news) news_bytes_ -= frame.size();
      frames_.pop_front();
      written_ = 0;
    }
  }
  return true;
}

}  // namespace tutti::internal
