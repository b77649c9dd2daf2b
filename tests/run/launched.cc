#include "launched.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>

namespace tutti_test {
namespace {

using tutti::internal::UniqueFd;
using Clock = std::chrono::steady_clock;

constexpr auto kLimit = std::chrono::seconds(60);

struct Pipe {
  UniqueFd reader, writer;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
};

// Of a file of /proc, whatever it says before its process ends; a stream would throw then.
std::string read_file(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t bytes; (bytes = read(file.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(bytes));
  return text;
}

std::string fresh_mark() {
  static std::atomic<int> next{0};
  return "TUTTI_TEST_MARK=" + std::to_string(getpid()) + "-" + std::to_string(next++) + ".";
}

// A file without a name that holds the text, at its beginning.
UniqueFd file_with(const std::string& text) {
  char name[] = "/tmp/tutti_run_input_XXXXXX";
  UniqueFd file(mkostemp(name, O_CLOEXEC));
  unlink(name);
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

[[noreturn]] void become_launcher(const std::vector<std::string>& arguments, const Launched::Options& options,
                                  const std::string& mark) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Its own group, as a shell gives it: what the test sends to the group does not reach the test.
  setpgid(0, 0);
  putenv(const_cast<char*>(mark.c_str()));
  for (const std::string& variable : options.environment) putenv(const_cast<char*>(variable.c_str()));
  std::vector<char*> argv{const_cast<char*>("tutti-run")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (options.before_exec) options.before_exec();
  execv(TUTTI_RUN, argv.data());
  _exit(99);
}

}  // namespace

Launched::Launched(const std::vector<std::string>& arguments) : Launched(arguments, Options()) {}

Launched::Launched(const std::vector<std::string>& arguments, const Options& options) : mark_(fresh_mark()) {
  Pipe out, err;
  const UniqueFd in = file_with(options.input);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in.get(), STDIN_FILENO);
    dup2(out.writer.get(), STDOUT_FILENO);
    dup2(err.writer.get(), STDERR_FILENO);
    become_launcher(arguments, options, mark_);
  }
  out_.fd = std::move(out.reader);
  err_.fd = std::move(err.reader);
}

Launched::~Launched() {
  for (const pid_t pid : left()) kill(pid, SIGKILL);
  if (!status_) waitpid(pid_, nullptr, 0);
  is_all_gone();
}

void Launched::signal(int signal) const { kill(pid_, signal); }

pid_t Launched::warden() const {
  for (const pid_t pid : left())
    if (read_file("/proc/" + std::to_string(pid) + "/comm") == "tutti-warden\n") return pid;
  return -1;
}

// Waits a little for bytes or the end. False when both pipes have ended.
bool Launched::read_some() {
  pollfd polls[2] = {{out_.fd.get(), POLLIN, 0}, {err_.fd.get(), POLLIN, 0}};
  poll(polls, 2, 10);
  Stream* streams[2] = {&out_, &err_};
  for (int i = 0; i < 2; ++i) {
    if (polls[i].revents == 0) continue;
    char buffer[65536];
    const ssize_t bytes = read(polls[i].fd, buffer, sizeof buffer);
    if (bytes > 0)
      streams[i]->text.append(buffer, static_cast<size_t>(bytes));
    else
      streams[i]->fd = UniqueFd();
  }
  return out_.fd || err_.fd;
}

bool Launched::wait_for_output(const std::string& text, int count) {
  const auto until = Clock::now() + kLimit;
  bool more = true;
  while (true) {
    int found = 0;
    for (size_t at = 0; (at = out_.text.find(text, at)) != std::string::npos; at += text.size()) ++found;
    if (found >= count) return true;
    if (!more || Clock::now() > until) return false;
    more = read_some();
  }
}

int Launched::wait() {
  const auto until = Clock::now() + kLimit;
  bool more = true;
  while (!status_ || more) {
    if (Clock::now() > until) return -1;
    more = more && read_some();
    int status = 0;
    if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    if (!more && !status_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 1000 + WTERMSIG(*status_);
}

std::vector<pid_t> Launched::left() const {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  while (const dirent* entry = readdir(folder.get())) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    if (read_file("/proc/" + std::string(entry->d_name) + "/environ").find(mark_) == std::string::npos) continue;
    if (state_of(pid) != 'Z' && state_of(pid) != 0) found.push_back(pid);
  }
  return found;
}

bool Launched::is_all_gone() const {
  return soon([this] { return left().empty(); });
}

char state_of(pid_t pid) {
  const std::string text = read_file("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? '\0' : text[name_end + 2];
}

bool soon(const std::function<bool()>& condition) {
  for (const auto until = Clock::now() + kLimit; Clock::now() < until;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

}  // namespace tutti_test
