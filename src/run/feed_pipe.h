// A pipe by which rank 0 gets its standard input piece by piece. Never blocks.
#pragma once

#include <poll.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace tutti::internal {

class FeedPipe {
 public:
  // Gives the rank's end in `reader`.
  static Result<FeedPipe> create(UniqueFd& reader);

  void feed(std::string_view bytes) { pending_ += bytes; }
  // Closes it when everything that was fed has been written.
  void end() { ending_ = true; }
  bool is_empty() const { return pending_.empty(); }
  // False after the end, or when the rank reads no more.
  bool is_open() const { return bool(pipe_); }

  void add_polls(std::vector<pollfd>& polls) const;
  // Does what can be done without waiting.
  void serve();

 private:
  UniqueFd pipe_;
  std::string pending_;
  bool ending_ = false;
};

}  // namespace tutti::internal
