#include "src/core/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/base/thread.h"

namespace tutti::internal {
namespace {

constexpr int kSuspicionMs = 200;
constexpr int kBlindPauseMs = 10;

// Nothing where the event changes nothing here. A rank that has left in order owes nothing as a rule; where it does,
// the transport finds out. Without the store, deaths are still noticed by the transport.
std::optional<Notice> notice_of(const Event& event) {
  switch (event.kind) {
    case Event::Kind::peer_failed:
      return Notice{.kind = Notice::Kind::peer_failed, .rank = event.rank, .text = event.text, .everyone_knows = true};
    case Event::Kind::aborted:
      return Notice{.kind = Notice::Kind::aborted,
                    .rank = event.rank,
                    .channel = event.channel,
                    .code = event.code,
                    .failed_rank = event.failed_rank,
                    .text = event.text,
                    .everyone_knows = true};
    case Event::Kind::store_lost: log_warn("{}", event.text); return std::nullopt;
    case Event::Kind::left:
    case Event::Kind::letter: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Status Watcher::start() {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return Status::system(Code::out_of_resources, "eventfd for the watch thread", errno);
  auto thread = start_thread("the watch thread", [this] { run(); });
  if (thread) thread_ = std::move(*thread);
  return thread.status();
}

void Watcher::stop() {
  if (thread_.joinable()) {
    stop_.store(true, std::memory_order_release);  // pairs with run()
    look();
    thread_.join();
  }
  if (wake_fd_ >= 0) close(wake_fd_);
  wake_fd_ = -1;
}

void Watcher::look() { eventfd_write(wake_fd_, 1); }

int Watcher::poll_ms() const {
  if (suspicions_.empty()) return -1;
  return std::ranges::min(suspicions_, {}, &Suspicion::until).until.poll_ms(kSuspicionMs);
}

void Watcher::run() {
  set_log_rank(session_.rank());
  std::vector<pollfd> fds;
  std::vector<uint64_t> keys;
  while (true) {
    fds.assign({{wake_fd_, POLLIN, 0}, {session_.fd(), POLLIN, 0}});  // poll ignores a negative descriptor
    keys.clear();
    for (const Watch& watch : transport_.watches()) {
      fds.push_back({watch.fd, POLLIN, 0});
      keys.push_back(watch.key);
    }
    if (poll(fds.data(), fds.size(), poll_ms()) < 0 && errno != EINTR) {
      // Poll is forbidden, as by a limit of descriptors that was lowered: looks without it.
      std::this_thread::sleep_for(std::chrono::milliseconds(kBlindPauseMs));
      for (pollfd& one : fds) one.revents = POLLIN;
    }
    if (stop_.load(std::memory_order_acquire)) return;  // pairs with stop()
    eventfd_t count = 0;
    eventfd_read(wake_fd_, &count);
    if (fds[1].revents) session_.serve([&](const Event& event) { put(event); });
    for (size_t i = 0; i < keys.size(); ++i)
      if (fds[i + 2].revents) transport_.serve(keys[i]);
    collect();
  }
}

void Watcher::put(const Event& event) {
  if (event.kind == Event::Kind::letter) return transport_.deliver(event.rank, event.text);
  if (event.kind == Event::Kind::left || event.kind == Event::Kind::peer_failed) transport_.gets_no_letters(event.rank);
  const auto notice = notice_of(event);
  if (!notice) return;
  std::erase_if(suspicions_, [&](const Suspicion& suspicion) { return suspicion.failure.peer == notice->rank; });
  notices_.put(*notice);
}

// What the transport has found out, and after a while without a word of the store, tells everyone.
void Watcher::collect() {
  for (PeerFailure failure = transport_.take_failure(); failure.peer >= 0; failure = transport_.take_failure())
    suspicions_.push_back({failure, Deadline::after_us(kSuspicionMs * 1000)});
  for (const Suspicion& suspicion : suspicions_) {
    if (!suspicion.until.passed()) continue;
    const auto& [peer, reason] = suspicion.failure;
    session_.report_failed(peer, reason);
    notices_.put({.kind = Notice::Kind::peer_failed, .rank = peer, .text = reason});
  }
  std::erase_if(suspicions_, [](const Suspicion& suspicion) { return suspicion.until.passed(); });
}

}  // namespace tutti::internal
