// What ranks write, passed on to standard output and standard error: as it comes, or in whole lines that begin with the
// rank's number. Never blocks. The supervisor's thread runs it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/run/line_tagger.h"
#include "src/run/rank_pipes.h"

namespace tutti::internal {

class Printer : public OutputReceiver {
 public:
  // Bytes go to these descriptors. Two that are one file share a queue, so that neither breaks the other's lines.
  Printer(int out_fd, int err_fd, bool tag);

  void take(int rank, Stream stream, std::string_view bytes) override;
  void finish(int rank, Stream stream) override;
  bool is_full() const override;
  bool is_broken(Stream stream) const override { return sinks_[sink_of(stream)].broken; }

  // A line of the launcher's own, for standard error.
  void add_line(const std::string& line) { sinks_[err_sink_].queue += line; }

  // What to poll for.
  void add_polls(std::vector<pollfd>& polls) const;
  // Writes what can be written without waiting.
  void flush();
  // Whether everything that was taken has been written.
  bool is_flushed() const { return sinks_[0].is_empty() && sinks_[1].is_empty(); }
  // "" or, once, why a descriptor takes no more.
  std::string take_fault() { return std::exchange(fault_, ""); }

 private:
  struct Sink {
    int fd = -1;
    std::string queue;
    size_t written = 0;  // of the queue
    bool broken = false;

    bool is_empty() const { return written == queue.size(); }
    bool is_full() const;
  };

  size_t sink_of(Stream stream) const { return stream == Stream::out ? 0 : err_sink_; }
  void flush(Sink& sink);

  const bool tag_;
  std::map<std::pair<int, Stream>, LineTagger> taggers_;
  std::array<Sink, 2> sinks_;
  size_t err_sink_ = 1;  // 0 where both streams go to one file
  std::string fault_;
};

}  // namespace tutti::internal
