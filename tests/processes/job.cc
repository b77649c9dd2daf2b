#include "job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../free_port.h"

namespace tutti_test {
namespace {

pid_t start(const std::string& program, const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment, int out) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  for (const std::string& entry : environment) putenv(const_cast<char*>(entry.c_str()));
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  std::perror(program.c_str());
  _exit(127);
}

}  // namespace

Job::Job(int ranks, const std::string& program, const std::vector<std::string>& arguments,
         const std::vector<std::string>& environment) {
  const uint16_t port = free_port();
  processes_.resize(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> all{"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks),
                                 "LOCAL_RANK=" + std::to_string(rank), "MASTER_ADDR=127.0.0.1",
                                 "MASTER_PORT=" + std::to_string(port)};
    all.insert(all.end(), environment.begin(), environment.end());
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) std::abort();
    processes_[rank].out = fds[0];
    processes_[rank].pid = start(program, arguments, all, fds[1]);
    close(fds[1]);
  }
}

Job::~Job() {
  for (Process& process : processes_)
    if (!process.ended) kill(process.pid, SIGKILL);
  for (int rank = 0; rank < size(); ++rank) wait(rank, Seconds(10));
  for (Process& process : processes_) close(process.out);
}

void Job::signal(int rank, int signal) {
  if (!processes_[rank].ended) kill(processes_[rank].pid, signal);
}

void Job::read_available(int wait_ms) {
  std::vector<pollfd> fds;
  for (const Process& process : processes_) fds.push_back({process.out, POLLIN, 0});
  poll(fds.data(), fds.size(), wait_ms);
  for (size_t i = 0; i < fds.size(); ++i) {
    char buffer[4096];
    if (!(fds[i].revents & POLLIN)) continue;
    const ssize_t bytes = read(processes_[i].out, buffer, sizeof buffer);
    if (bytes > 0) processes_[i].output.append(buffer, static_cast<size_t>(bytes));
  }
}

void Job::reap() {
  for (Process& process : processes_) {
    int status = 0;
    if (process.ended || waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
    Ended ended;
    ended.after = std::chrono::steady_clock::now() - mark_;
    if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    process.ended = ended;
  }
}

bool Job::wait_for_output(int rank, const std::string& text, Seconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    const bool ended = processes_[rank].ended.has_value();
    read_available(5);
    reap();
    if (processes_[rank].output.find(text) != std::string::npos) return true;
    if (ended) return false;
  }
  return false;
}

std::optional<Ended> Job::wait(int rank, Seconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  do {
    reap();
    read_available(processes_[rank].ended ? 0 : 2);
  } while (!processes_[rank].ended && std::chrono::steady_clock::now() < until);
  return processes_[rank].ended;
}

}  // namespace tutti_test
