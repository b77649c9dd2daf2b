// What ranks write, passed on in whole lines that begin with the rank's number. Never blocks: when nobody takes the
// lines any more, the ranks' own writes wait, as they would without this. The supervisor's thread runs it.
#pragma once

#include <poll.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace tutti::internal {

// Cuts one rank's stream into lines.
class LineTagger {
 public:
  // A longer line is continued on a tagged line of its own: memory stays bounded.
  static constexpr size_t kLongestLine = size_t{1} << 20;

  explicit LineTagger(int rank);
  // Appends to `out` the lines that are whole now.
  void feed(const char* bytes, size_t count, std::string& out);
  // Appends what is left, as a line.
  void finish(std::string& out);

 private:
  std::string tag_;
  std::string partial_;
};

class TaggedOutput {
 public:
  enum class Stream { out, err };

  // Lines go to these descriptors. Two that are one file share a queue, so that neither breaks the other's lines.
  static Result<TaggedOutput> create(int out_fd, int err_fd);
  // A pipe for a rank's stream: gives the end for the rank to write to.
  Result<UniqueFd> add(int rank, Stream stream);

  // A line of the launcher's own, for the second descriptor.
  void add_line(const std::string& line) { sinks_[err_sink_].queue += line; }

  // What to poll for.
  void add_polls(std::vector<pollfd>& polls) const;
  // Does what can be done without waiting.
  void serve();
  // The writers are gone: takes the rest of what they wrote.
  void take_rest();
  // Whether everything that was read has been written.
  bool is_flushed() const;
  // "" or, once, why a descriptor takes no more lines.
  std::string take_fault();

 private:
  struct Sink {
    int fd = -1;
    std::string queue;
    size_t written = 0;  // of the queue
    bool broken = false;

    bool is_empty() const { return written == queue.size(); }
    bool is_full() const;
  };
  struct Source {
    UniqueFd fd;
    size_t sink = 0;
    LineTagger tagger;
  };

  enum class Got { bytes, nothing, end };

  bool is_full() const;
  Got read_once(Source& source);
  void close(Source& source);
  void flush(Sink& sink);

  UniqueFd epoll_;
  std::array<Sink, 2> sinks_;
  size_t err_sink_ = 1;  // 0 where both streams go to one file
  std::vector<std::unique_ptr<Source>> sources_;
  std::string fault_;
};

}  // namespace tutti::internal
