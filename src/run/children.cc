#include "src/run/children.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 does not say itself that these are C functions
}

namespace tutti::internal {
namespace {

std::optional<pid_t> parse_pid(const char* text) {
  pid_t pid = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, pid);
  return error == std::errc() && stop == end ? std::optional(pid) : std::nullopt;
}

// From /proc/PID/stat: "PID (name) state parent ...". The name may hold anything, so its end is the last parenthesis.
pid_t parent_of(pid_t pid) {
  const UniqueFd file(open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t bytes = file ? read(file.get(), text, sizeof text - 1) : -1;
  if (bytes <= 0) return -1;
  text[bytes] = '\0';
  const char* name_end = std::strrchr(text, ')');
  int parent = -1;
  if (name_end == nullptr || std::sscanf(name_end, ") %*c %d", &parent) != 1) return -1;
  return parent;
}

void reap_ended() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

Status become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0) return Status();
  return Status::system(Code::unsupported, "prctl(PR_SET_CHILD_SUBREAPER)", errno);
}

std::vector<pid_t> list_children() {
  std::vector<pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return children;
  const pid_t self = getpid();
  while (const dirent* entry = readdir(folder.get()))
    if (const auto pid = parse_pid(entry->d_name); pid && parent_of(*pid) == self) children.push_back(*pid);
  return children;
}

bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool kill_all_children(Deadline deadline) {
  constexpr int kPauseMs = 2;
  while (true) {
    for (const pid_t child : list_children()) kill(child, SIGKILL);
    reap_ended();
    if (!has_children()) return true;
    if (deadline.passed()) return false;
    poll(nullptr, 0, kPauseMs);
  }
}

Result<DeathWatch> DeathWatch::create() {
  DeathWatch watch;
  watch.epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!watch.epoll_) return Status::system(Code::out_of_resources, "epoll_create1", errno);
  return watch;
}

Status DeathWatch::add(pid_t pid) {
  UniqueFd fd(pidfd_open(pid, 0));
  if (!fd) return Status::system(Code::out_of_resources, fmt::format("pidfd_open of process {}", pid), errno);
  // The kernel keeps what is ready in the order in which it became so. Edge-triggered, or else what take() has seen
  // would go to the end of that list.
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.fd = pid;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0)
    return Status::system(Code::out_of_resources, fmt::format("epoll_ctl for process {}", pid), errno);
  watched_.push_back({pid, std::move(fd)});
  return Status();
}

void DeathWatch::remove(pid_t pid) {
  std::erase_if(watched_, [pid](const Watched& one) { return one.pid == pid; });
}

std::vector<pid_t> DeathWatch::take() {
  constexpr int kBatch = 64;
  std::vector<pid_t> ended;
  epoll_event events[kBatch];
  for (int count = kBatch; count == kBatch;) {
    count = epoll_wait(epoll_.get(), events, kBatch, 0);
    for (int i = 0; i < count; ++i) {
      ended.push_back(events[i].data.fd);
      remove(events[i].data.fd);
    }
  }
  return ended;
}

}  // namespace tutti::internal
