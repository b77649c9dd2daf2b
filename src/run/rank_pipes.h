// The pipes into which ranks write, and their reading. Never blocks: while the receiver is full nothing is read, and
// the ranks' own writes wait, as they would without this. The supervisor's thread runs it.
#pragma once

#include <poll.h>

#include <memory>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace tutti::internal {

enum class Stream : int { out, err };

// Whoever gets what ranks write, piece by piece.
class OutputReceiver {
 public:
  virtual ~OutputReceiver() = default;

  virtual void take(int rank, Stream stream, std::string_view bytes) = 0;
  // Nothing more will come of it.
  virtual void finish(int rank, Stream stream) = 0;
  virtual bool is_full() const = 0;
  // Nobody takes that stream any more: the ranks shall learn it as they would without us, by SIGPIPE.
  virtual bool is_broken(Stream stream) const = 0;
};

class RankPipes {
 public:
  static Result<RankPipes> create();
  // A pipe for a rank's stream: gives the end for the rank to write to.
  Result<UniqueFd> add(int rank, Stream stream);

  // What to poll for.
  void add_polls(std::vector<pollfd>& polls) const;
  // Does what can be done without waiting.
  void serve(OutputReceiver& receiver);
  // The writers are gone: takes the rest of what they wrote.
  void take_rest(OutputReceiver& receiver);

 private:
  struct Source {
    UniqueFd fd;
    int rank;
    Stream stream;
  };
  enum class Got { bytes, nothing, end };

  static Got read_once(Source& source, OutputReceiver& receiver);
  void close(Source& source, OutputReceiver& receiver);

  UniqueFd epoll_;
  std::vector<std::unique_ptr<Source>> sources_;
};

}  // namespace tutti::internal
