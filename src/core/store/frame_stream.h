// Bytes and frames over a non-blocking socket. Reading and writing are apart, so that one thread may read while others
// write under a lock of their own. Nothing here blocks.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "src/core/store/message.h"

namespace tutti::internal {

class FrameReader {
 public:
  // Reads what is there, holding at most about `most` bytes. False when the connection has ended; `why` then says how.
  bool read_available(int fd, size_t most);
  // Everything that has arrived and was not taken.
  std::string_view bytes() const { return std::string_view(buffer_).substr(taken_); }
  void take(size_t count) { taken_ += count; }

  // The next whole frame's message. Nothing when it is not here yet, or when what came is no message: then is_broken().
  std::optional<Message> next();
  bool is_broken() const { return broken_; }
  const std::string& why() const { return why_; }

 private:
  std::string buffer_;
  size_t taken_ = 0;
  bool broken_ = false;
  std::string why_;
};

class FrameWriter {
 public:
  void put(Frame frame) { frames_.push_back({std::move(frame), false}); }
  // The same, and it counts in news_bytes() until it is written.
  void put_news(Frame frame) {
    news_bytes_ += frame->size();
    frames_.push_back({std::move(frame), true});
  }
  // Writes what the socket takes. False when the connection has ended.
  bool flush(int fd);
  bool is_empty() const { return frames_.empty(); }
  size_t news_bytes() const { return news_bytes_; }

 private:
  struct Waiting {
    Frame frame;
    bool is_news;
  };
  std::deque<Waiting> frames_;
  size_t written_ = 0;  // of the first
  size_t news_bytes_ = 0;
};

}  // namespace tutti::internal
