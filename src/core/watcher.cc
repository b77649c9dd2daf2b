#include "src/core/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <vector>

#include "src/base/log.h"

namespace tutti::internal {
namespace {

// Nothing where the event concerns no rank: without the store, deaths are still noticed by the transports.
std::optional<Notice> notice_of(const Event& event) {
  switch (event.kind) {
    case Event::Kind::peer_failed: return Notice{Notice::Kind::peer_failed, event.rank, 0, event.code, event.text};
    case Event::Kind::left: return Notice{Notice::Kind::peer_left, event.rank, 0, event.code, event.text};
    case Event::Kind::aborted:
      return Notice{Notice::Kind::aborted, event.rank, event.channel, event.code, event.text};
    case Event::Kind::store_lost: break;
  }
  log_warn("{}", event.text);
  return std::nullopt;
}

}  // namespace

Status Watcher::start() {
  stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_fd_ < 0) return Status::system(Code::out_of_resources, "eventfd for the watch thread", errno);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits the mask: signals go to the program's threads
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

void Watcher::stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_fd_, 1);
    thread_.join();
  }
  if (stop_fd_ >= 0) close(stop_fd_);
  stop_fd_ = -1;
}

void Watcher::run() {
  std::vector<pollfd> fds;
  std::vector<uint64_t> keys;
  while (true) {
    fds.assign({{stop_fd_, POLLIN, 0}, {session_.fd(), POLLIN, 0}});  // poll ignores a negative descriptor
    keys.clear();
    for (const Watch& watch : transport_.watches()) {
      fds.push_back({watch.fd, POLLIN, 0});
      keys.push_back(watch.key);
    }
    if (poll(fds.data(), fds.size(), -1) < 0) continue;  // EINTR
    if (fds[0].revents) return;
    if (fds[1].revents) session_.serve([&](const Event& event) { put(event); });
    for (size_t i = 0; i < keys.size(); ++i)
      if (fds[i + 2].revents) transport_.serve(keys[i]);
    collect();
  }
}

void Watcher::put(const Event& event) {
  if (const auto notice = notice_of(event)) notices_.put(*notice);
}

// What the transport has found out about peers goes to everyone.
void Watcher::collect() {
  for (PeerFailure failure = transport_.take_failure(); failure.peer >= 0; failure = transport_.take_failure()) {
    session_.report_failed(failure.peer, failure.reason);
    notices_.put({Notice::Kind::peer_failed, failure.peer, 0, Code::peer_failed, failure.reason});
  }
}

}  // namespace tutti::internal
