// The processes below this one. Both processes of tutti-run are "subreapers": whoever loses its parent below them
// becomes their child, also a daemon in a session of its own. So whatever a job started can be found and ended, and no
// process number is used after its process may have gone.
#pragma once

#include <sys/types.h>

#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace tutti::internal {

Status become_subreaper();

// This process's children at this moment.
std::vector<pid_t> list_children();
bool has_children();

// Kills every child, and those that fall to this process thereby, and reaps them. False: some did not end in time.
bool kill_all_children(Deadline deadline);

// Tells which of some processes have ended, in the order in which they ended: waitpid does not.
class DeathWatch {
 public:
  static Result<DeathWatch> create();

  Status add(pid_t pid);
  void remove(pid_t pid);
  // Readable when one has ended.
  int fd() const { return epoll_.get(); }
  // Those that have ended since, first one first; each once, then it is no longer watched.
  std::vector<pid_t> take();

 private:
  struct Watched {
    pid_t pid;
    UniqueFd fd;
  };

  UniqueFd epoll_;
  std::vector<Watched> watched_;
};

}  // namespace tutti::internal
