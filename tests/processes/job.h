// A job of real processes for tests: starts a program once per rank, lets the test hurt them, and collects what they
// said. Whatever happens to the test, the destructor ends and reaps every process that the job started.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace tutti_test {

using Seconds = std::chrono::duration<double>;

struct Ended {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;
  Seconds after{};  // since the job's mark()
};

class Job {
 public:
  // Starts `ranks` processes of `program` with `arguments`; `environment` ("NAME=value") is added to theirs.
  Job(int ranks, const std::string& program, const std::vector<std::string>& arguments,
      const std::vector<std::string>& environment = {});
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int size() const { return static_cast<int>(processes_.size()); }
  pid_t pid(int rank) const { return processes_[rank].pid; }
  void signal(int rank, int signal);

  // Reads until rank `rank` has printed `text` somewhere; false when `limit` is over or the rank ended without it.
  bool wait_for_output(int rank, const std::string& text, Seconds limit);
  // Times count from here.
  void mark() { mark_ = std::chrono::steady_clock::now(); }
  // Waits for the end of a rank; nothing when it still runs after `limit`.
  std::optional<Ended> wait(int rank, Seconds limit);
  const std::string& output(int rank) const { return processes_[rank].output; }

 private:
  struct Process {
    pid_t pid = -1;
    int out = -1;
    std::string output;
    std::optional<Ended> ended;
  };

  void read_available(int wait_ms);
  void reap();

  std::vector<Process> processes_;
  std::chrono::steady_clock::time_point mark_ = std::chrono::steady_clock::now();
};

}  // namespace tutti_test
