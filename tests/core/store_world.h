// Worlds of store sessions for tests: ranks as threads of this process.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/core/store/reach.h"
#include "src/core/store/session.h"

namespace tutti::internal {

using SessionResult = Result<std::unique_ptr<Session>>;

inline constexpr int64_t kSecond = 1'000'000;
// What a machine under load may need for anything that must succeed.
inline Deadline patience() { return Deadline::after_us(60 * kSecond); }

// A rendezvous by a name that no other world of this process has.
inline Rendezvous memory_rendezvous(const std::string& name, int rank, int size) {
  Rendezvous rendezvous;
  rendezvous.kind = Rendezvous::Kind::memory;
  rendezvous.rank = rank;
  rendezvous.size = size;
  rendezvous.served_by_rank = true;
  rendezvous.serve = rank == 0;
  rendezvous.name = name;
  return rendezvous;
}

inline Rendezvous address_rendezvous(const std::string& host, uint16_t port, int rank, int size,
                                     const std::string& secret = "") {
  Rendezvous rendezvous = memory_rendezvous("", rank, size);
  rendezvous.kind = Rendezvous::Kind::address;
  rendezvous.host = host;
  rendezvous.ports = {port};
  rendezvous.secret = secret;
  rendezvous.label = "test";
  return rendezvous;
}

inline JoinOptions options(Rendezvous rendezvous, const std::string& version = "1.0", const std::string& digest = "") {
  return {std::move(rendezvous), version, digest};
}

// Calls join(rank) on a thread per rank; the results in the order of ranks.
inline std::vector<SessionResult> join_all(int count, const std::function<SessionResult(int)>& join) {
  std::vector<std::optional<SessionResult>> results(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { results[i].emplace(join(i)); });
  for (std::thread& thread : threads) thread.join();
  std::vector<SessionResult> all;
  for (auto& result : results) all.push_back(std::move(*result));
  return all;
}

// A rank that is in, and what it has heard and the test not looked at yet.
class TestRank {
 public:
  explicit TestRank(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  Session* operator->() { return session_.get(); }
  Session& operator*() { return *session_; }
  explicit operator bool() const { return session_ != nullptr; }
  // Goes without a goodbye.
  void vanish() { session_.reset(); }

  // Polls as the core's watch thread does until there is an event; one of rank -1 when none came in `wait`.
  Event next_event(Deadline wait = patience()) {
    while (events_.empty() && !wait.passed()) {
      if (wait_for(session_->fd(), POLLIN, wait))
        session_->serve([&](const Event& event) { events_.push_back(event); });
    }
    if (events_.empty()) return {};
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  // Whether there is nothing to serve, now and for a moment.
  bool is_quiet() { return events_.empty() && wait_for(session_->fd(), POLLIN, Deadline::after_us(50'000)) == 0; }

 private:
  std::unique_ptr<Session> session_;
  std::deque<Event> events_;
};

// A world of `size` ranks that are all in.
inline std::vector<TestRank> joined_world(const std::string& name, int size) {
  auto results =
      join_all(size, [&](int rank) { return Session::join(options(memory_rendezvous(name, rank, size)), patience()); });
  std::vector<TestRank> world;
  for (auto& result : results) {
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (result.ok()) world.emplace_back(std::move(*result));
  }
  return world;
}

// All ranks leave, each on its thread.
inline void leave_all(std::vector<TestRank>& world) {
  std::vector<std::thread> threads;
  for (auto& rank : world)
    threads.emplace_back([&] {
      const Status left = rank->leave(patience());
      EXPECT_TRUE(left.ok()) << left.message();
    });
  for (std::thread& thread : threads) thread.join();
  world.clear();
}

}  // namespace tutti::internal
