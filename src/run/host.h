// tutti-run's end of one host of a job: the ssh (or, on this machine, the plain child) that runs an agent there, the
// link to it, and what it writes to standard error. The head's thread runs it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/run/link.h"
#include "src/run/spawn.h"

namespace tutti::internal {

class Host {
 public:
  struct Plan {
    std::string name;
    std::vector<std::string> command;  // starts the agent
    bool is_here = false;              // without an ssh between
    int64_t silence_us = 0;
    std::string job;  // what the agent gets: the text of a LinkMessage
  };

  static Result<std::unique_ptr<Host>> start(Plan plan, const Inherited& inherited);

  const std::string& name() const { return plan_.name; }
  bool is_here() const { return plan_.is_here; }
  pid_t pid() const { return pid_; }

  void put(const LinkMessage& message) { link_.put(message); }
  // The next message from the agent, but those that are our business alone.
  std::optional<LinkMessage> next();
  // Lines of standard error that came while it ran.
  std::vector<std::string> take_lines();

  void add_polls(std::vector<pollfd>& polls, bool may_read) const;
  // Does what can be done without waiting; at `wake_at` at the latest.
  void serve(bool may_read);
  Deadline wake_at() const;

  // The child has ended.
  void on_exit(int wait_status);
  // The agent's ranks end at once, as those of a tutti-run that was killed.
  void hang_up() { link_.close_out(); }
  void kill();

  // The agent has its job.
  bool is_started() const { return started_; }
  // All its ranks have ended, in whatever way, and it has said so.
  bool is_ended() const { return ended_; }
  // Its child has ended: nothing more will come.
  bool is_gone() const { return exit_.has_value() && !link_.is_open(); }
  // Once, where it is gone but had not ended, or cannot go on: why.
  std::optional<std::string> take_loss();

 private:
  Host(Plan plan, Link link, UniqueFd errors)
      : plan_(std::move(plan)), link_(std::move(link)), errors_(std::move(errors)) {}

  void read_errors();
  void watch_link();
  std::string describe_loss() const;

  const Plan plan_;
  Link link_;
  UniqueFd errors_;
  std::string error_text_;
  pid_t pid_ = -1;
  std::optional<int> exit_;             // the child's wait status
  Deadline limit_ = Deadline::never();  // when the child is killed, or the link given up
  bool started_ = false;
  bool ended_ = false;
  bool link_ended_ = false;
  bool was_killed_ = false;
  bool loss_told_ = false;
};

}  // namespace tutti::internal
