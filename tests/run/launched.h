// tutti-run as a test starts it: with its own pipes, watched to its end. Every process that it starts carries a mark in
// its environment, by which the test finds whatever is left. The destructor leaves none.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/unique_fd.h"

namespace tutti_test {

class Launched {
 public:
  struct Options {
    std::string input;                     // what standard input holds
    std::function<void()> before_exec;     // in the child
    std::vector<std::string> environment;  // "NAME=value", added to ours
  };
  // Starts tutti-run with the arguments.
  explicit Launched(const std::vector<std::string>& arguments);
  Launched(const std::vector<std::string>& arguments, const Options& options);
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int signal) const;
  // The other process of tutti-run; -1 when there is none.
  pid_t warden() const;

  // Reads until standard output holds `count` times `text`. False: it ended before, or did not come in time.
  bool wait_for_output(const std::string& text, int count = 1);
  // Reads to the end, of pipes and of the process. The exit status, 1000 + number after a signal, -1 if it does not
  // end.
  int wait();
  // The reader of standard output leaves.
  void close_output() { out_.fd = tutti::internal::UniqueFd(); }

  const std::string& out() const { return out_.text; }
  const std::string& err() const { return err_.text; }

  // Processes with the mark that are alive.
  std::vector<pid_t> left() const;
  // Whether there soon is none.
  bool is_all_gone() const;

 private:
  struct Stream {
    tutti::internal::UniqueFd fd;
    std::string text;
  };

  bool read_some();

  std::string mark_;
  pid_t pid_ = -1;
  std::optional<int> status_;
  Stream out_, err_;
};

// The letter of /proc/PID/stat: R, S, T, Z and so on; 0 when there is no such process.
char state_of(pid_t pid);
// Polls until it holds, for a generous time.
bool soon(const std::function<bool()>& condition);

}  // namespace tutti_test
