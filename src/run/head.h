// The second process of a tutti-run whose ranks are on several hosts: serves the store and runs an agent on each host,
// through ssh. What ranks write comes together here, and here it is decided how the job ends.
//
// Invariant: it returns only when every agent's connection has ended; an agent whose connection ends ends its ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/core/store/store_server.h"
#include "src/run/environment.h"
#include "src/run/host.h"
#include "src/run/options.h"
#include "src/run/printer.h"
#include "src/run/say.h"

namespace tutti::internal {

class Head {
 public:
  // `front` is readable when the first process has gone; `input` is rank 0's standard input.
  Head(const RunOptions& options, const Inherited& inherited, UniqueFd front, UniqueFd input);
  // Runs the job. The exit status.
  int run();

 private:
  // How the job ends. Each stage but the first has a time limit, after which the next one comes.
  enum class Stage {
    running,
    ending,      // agents were told to end their ranks
    hanging_up,  // connections are closed, which ends the ranks at once
    killing,     // and what still holds a connection is killed
  };

  Status prepare();
  Status start_hosts();
  Result<Host::Plan> plan_for(const HostSlots& slots, int first_rank) const;

  void loop();
  bool is_over() const;
  void serve_hosts();
  void obey(Host& host, const LinkMessage& message);
  void serve_input();
  void serve_output();
  void wait_for_something();
  void serve_signals();
  void pass_on(int signal);
  void reap();
  void advance();
  void enter(Stage stage);
  void fail(int status, const std::string& message, Stage stage = Stage::ending);
  void say(const std::string& message) { printer_.add_line(launcher_line(message)); }
  bool others_run(const Host& host) const;

  const RunOptions& options_;
  const Inherited& inherited_;
  UniqueFd front_, input_, signals_;
  Printer printer_;
  JobAddress job_;
  std::vector<std::string> store_hosts_;
  std::unique_ptr<StoreServer> store_;
  std::vector<std::unique_ptr<Host>> hosts_;
  bool input_wanted_ = false;
  bool broken_told_[2] = {false, false};

  Stage stage_ = Stage::running;
  Deadline stage_end_ = Deadline::never();
  Deadline job_end_ = Deadline::never();         // by --timeout
  Deadline abandon_output_ = Deadline::never();  // when nobody need take the rest of it
  std::optional<int> failure_;                   // the exit status of what failed first
};

}  // namespace tutti::internal
