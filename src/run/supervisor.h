// The second process of tutti-run: parent of the ranks. It lives in a session of its own, so that what is sent to the
// shell's process group reaches the ranks once, by way of the first process; and when that one goes without a word it
// ends the job. The same code runs the ranks of an agent on another host; what differs is its Outside.
//
// Invariant: it returns only when no process of the job is left (or one does not die by SIGKILL, which it says).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"
#include "src/run/children.h"
#include "src/run/outside.h"
#include "src/run/spawn.h"
#include "src/run/task.h"

namespace tutti::internal {

class Supervisor {
 public:
  // `front` is readable when the first process has gone; `input` is rank 0's standard input, if that is among them.
  Supervisor(const Task& task, const Inherited& inherited, UniqueFd front, UniqueFd input, Outside& outside);
  // Runs the ranks. The exit status.
  int run();

 private:
  struct Rank {
    pid_t pid = -1;
    bool is_running = false;
  };
  // How the job ends. Each stage but the first has a time limit, after which the next one comes.
  enum class Stage {
    running,
    lingering,    // the ranks have ended, but not what they started: it may finish by itself
    terminating,  // SIGTERM was sent to all
    killing,      // SIGKILL is sent to all, until none is left
  };

  Status prepare();
  Status place_ranks();
  void start_ranks();
  void start_rank(int local_rank, int null_fd);

  void loop();
  void serve_outside();
  void finish_output();
  void wait_for_something();
  bool is_over();
  void serve_signals();
  void pass_on(int signal);
  void reap();
  void on_end(pid_t pid, int status);
  void advance();
  void enter(Stage stage);
  void fail(int status, const std::string& message, Stage stage = Stage::terminating);

  bool any_running() const { return running_count_ > 0; }
  void signal_ranks(int signal) const;
  void signal_leftovers(int signal);

  const Task& task_;
  const Inherited& inherited_;
  UniqueFd front_;
  UniqueFd input_;
  Outside& outside_;
  UniqueFd signals_;
  std::vector<CpuList> places_;  // what each rank is bound to; empty: nothing
  std::optional<DeathWatch> deaths_;

  std::vector<Rank> ranks_;
  int running_count_ = 0;
  Stage stage_ = Stage::running;
  Deadline stage_end_ = Deadline::never();
  Deadline job_end_ = Deadline::never();         // by --timeout
  Deadline abandon_output_ = Deadline::never();  // when nobody need take the rest of it
  Deadline give_up_ = Deadline::never();         // on processes that SIGKILL does not end
  std::optional<int> failure_;                   // the exit status of what failed first
  std::set<int> passed_on_;                      // signals that were passed on: ranks that they end need no message
  std::set<pid_t> told_;                         // leftovers that had their SIGTERM
};

}  // namespace tutti::internal
