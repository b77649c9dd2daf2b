// The world of a supervisor outside its own ranks: where what they write goes, and who else has a say in how the job
// ends. On the user's machine that is the console; in an agent on another host, the tutti-run that started it.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/run/rank_pipes.h"

namespace tutti::internal {

// What a supervisor is told to do.
struct Order {
  enum class Kind {
    pass_on,  // the signal `number`, to the ranks
    end,      // end the ranks, with time to clean up
    kill,     // at once: nobody is there any more
    fail,     // the same as `end`, with the exit status `number`, because of `message`
  };
  Kind kind{};
  int number = 0;
  std::string message;
};

class Outside {
 public:
  virtual ~Outside() = default;

  // What a rank shall write to; none: what this process itself writes to.
  virtual Result<UniqueFd> stream_of(int rank, Stream stream) = 0;
  virtual void say(const std::string& message) = 0;
  // The job has failed, with this exit status; `message` is "" where there is nothing to say. So many ranks still run.
  virtual void fail(int status, const std::string& message, int running_count) = 0;

  virtual void add_polls(std::vector<pollfd>& polls) const = 0;
  // Does what can be done without waiting; at `wake_at` at the latest.
  virtual std::vector<Order> serve() = 0;
  virtual Deadline wake_at() const { return Deadline::never(); }

  // The ranks are gone: takes the rest of what they wrote.
  virtual void take_rest() = 0;
  virtual bool is_flushed() const = 0;
};

}  // namespace tutti::internal
