#include "src/run/spawn.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/base/unique_fd.h"
#include "src/run/options.h"

namespace tutti::internal {
namespace {

struct Report {
  const char* call;  // a literal: the same address in parent and child
  int error;
};

[[noreturn]] void give_up(int report_fd, const char* call, int error) {
  const Report report{call, error};
  // Fits into a pipe's buffer; without a reader nobody asks.
  [[maybe_unused]] const ssize_t written = write(report_fd, &report, sizeof report);
  _exit(kExitNotFound);
}

void move_to(int from, int to, int report_fd) {
  if (from != to && dup2(from, to) < 0) give_up(report_fd, "dup2", errno);
}

// In the child. Other threads of the parent may have held any lock when it forked: system calls only.
[[noreturn]] void become_rank(const Start& start, char* const* argv, pid_t parent, int report_fd) {
  setsid();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(report_fd, "prctl(PR_SET_PDEATHSIG)", errno);
  if (getppid() != parent) _exit(kExitLauncher);  // it ended before the kernel was told to watch it
  move_to(start.in, STDIN_FILENO, report_fd);
  move_to(start.out, STDOUT_FILENO, report_fd);
  move_to(start.err, STDERR_FILENO, report_fd);
  if (setrlimit(RLIMIT_NOFILE, &start.inherited->files) != 0) give_up(report_fd, "setrlimit", errno);
  if (start.binding != nullptr)
    if (const int error = start.binding->bind_this_thread()) give_up(report_fd, "sched_setaffinity", error);
  sigprocmask(SIG_SETMASK, &start.inherited->mask, nullptr);
  environ = const_cast<char**>(start.environment);  // whose PATH is searched
  execvp(argv[0], argv);
  give_up(report_fd, "exec", errno);
}

}  // namespace

Started start_process(const Start& start) {
  std::vector<char*> argv;
  for (const std::string& word : *start.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {-1, "pipe", errno};
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return {-1, "fork", errno};
  if (pid == 0) become_rank(start, argv.data(), parent, writer.get());
  writer = UniqueFd();
  Report report{};
  ssize_t bytes = 0;
  while ((bytes = read(reader.get(), &report, sizeof report)) < 0 && errno == EINTR) {
  }
  if (bytes != static_cast<ssize_t>(sizeof report)) return {pid, "", 0};  // exec closed the pipe
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {-1, report.call, report.error};
}

StartFailure explain(const Started& failed, const std::vector<std::string>& command, size_t environment_bytes) {
  const std::string& program = command.front();
  const std::string reason = std::strerror(failed.error);
  if (std::strcmp(failed.failed_call, "exec") != 0)
    return {fmt::format("cannot start '{}': {}: {}", program, failed.failed_call, reason), kExitLauncher};
  if (failed.error == E2BIG) {
    size_t argument_bytes = 0;
    for (const std::string& word : command) argument_bytes += word.size() + 1 + sizeof(char*);
    return {fmt::format("cannot start '{}': its environment of {} bytes and arguments of {} bytes are more than the "
                        "system takes, together ({}; ulimit -s) or in one piece (128 KiB)",
                        program, environment_bytes, argument_bytes, reason),
            kExitNotExecutable};
  }
  if (failed.error != ENOENT) return {fmt::format("cannot start '{}': {}", program, reason), kExitNotExecutable};
  if (program.find('/') == std::string::npos)
    return {fmt::format("cannot start '{}': no folder of its PATH has it (a program of this folder is ./{})", program,
                        program),
            kExitNotFound};
  const bool is_there = access(program.c_str(), F_OK) == 0;
  return {fmt::format("cannot start '{}': {}", program, is_there ? "the interpreter that it names is missing" : reason),
          kExitNotFound};
}

}  // namespace tutti::internal
