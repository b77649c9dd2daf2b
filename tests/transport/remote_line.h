// A TCP connection that carries frames between the guests. When it breaks, or the other end is not heard of for long,
// the program ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/unique_fd.h"
#include "tests/transport/remote_frame.h"

namespace tutti::internal::conformance {

// One thread sends at a time, and one receives.
class Line {
 public:
  explicit Line(UniqueFd fd);
  // To a listener that may not be there yet. An answer on it is waited for no longer than any call may take.
  static Line to(const std::string& ip, uint16_t port);

  int fd() const { return fd_.get(); }
  void send(Frame frame);
  // Nothing: the other end has finished.
  std::optional<Reader> receive();
  Reader receive_answer();
  // Nothing more is sent; what the other end still has to say can be received.
  void finish();

 private:
  UniqueFd fd_;
};

class LineListener {
 public:
  explicit LineListener(uint16_t port);
  Line accept();

 private:
  UniqueFd fd_;
};

}  // namespace tutti::internal::conformance
