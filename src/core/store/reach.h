// One rank's way into the store: connects, proves the secret, asks to join, and judges what answers. Blocking, with a
// deadline; the joining thread.
#pragma once

#include <optional>
#include <string>

#include "src/core/store/frame_stream.h"
#include "src/core/store/locate.h"

namespace tutti::internal {

struct Reached {
  Socket socket;
  FrameReader reader;  // may hold what came after the welcome
};

struct Attempt {
  enum class Kind {
    reached,
    again,     // nothing there, or not ready: another try may succeed
    ending,    // a store of this job whose world is on its way out: what comes next will listen there
    foreign,   // something else answers there, or a tutti of another protocol
    stranger,  // a store that does not know this secret
    refused,   // the store has said no, or this process is at a limit: `status`
  };
  Kind kind = Kind::again;
  std::string text;  // what happened, with the address
  Status status;
  std::optional<Reached> reached;
};

// One attempt at one address.
Attempt attempt(const Address& address, const Credentials& credentials, const Message& join, Deadline deadline);
// One attempt at each address of the place, until one decides it: what is said of the others is in the text.
Attempt attempt_all(const StorePlace& place, const Message& join, Deadline deadline);

// Whether the store of these credentials answers at the address: proves the secret both ways, and leaves. Not ok: the
// message names the address and what came of it.
Status knock(const Address& address, const Credentials& credentials, Deadline deadline);

// Waiting times between attempts: doubling, with jitter, so that many ranks do not come in step.
class Backoff {
 public:
  // Sleeps, at most until the deadline.
  void pause(Deadline deadline);

 private:
  int64_t next_us_ = 1000;
};

}  // namespace tutti::internal
