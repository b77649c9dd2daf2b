// The way from a rendezvous to a session in which all ranks are present. Blocking; the joining thread.
#pragma once

#include <memory>
#include <string>

#include "src/core/store/reach.h"
#include "src/core/store/session.h"

namespace tutti::internal {

class Joining {
 public:
  Joining(const JoinOptions& options, Deadline deadline);

  Result<std::unique_ptr<Session>> run();

 private:
  Status host();
  Status try_to_host(bool& hosting);
  Status start_server(Listeners listeners);
  Status blocked(const Listening& listening);
  Status reach();
  Status try_to_reach();
  Status judge(const Attempt& attempt);
  void note(std::string attempt);
  Status too_late() const;
  Status await_others();

  const Rendezvous& rendezvous_;
  const Deadline deadline_;
  const int64_t started_us_;
  Message request_;
  Backoff backoff_;
  Published published_;
  std::unique_ptr<StoreServer> server_;
  std::optional<Reached> reached_;
  std::unique_ptr<Session> session_;
  std::string last_try_;        // what came of it
  int64_t wrong_since_us_ = 0;  // since when what answers has been wrong; 0: not at the last try
};

}  // namespace tutti::internal
