// Ranks of shm in one process, connected to each other, each with its watch thread: one mapping per region, so that the
// thread sanitizer sees both ends of every word.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "transport/shm/shm_transport.h"

namespace tutti::internal::testing {

// Serves a transport's watch descriptor until it goes.
class WatchThread {
 public:
  explicit WatchThread(Transport& transport) : transport_(transport), thread_([this] { run(); }) {}
  ~WatchThread() {
    stop_.store(true);
    thread_.join();
  }

 private:
  void run() {
    const Watch watch = transport_.watches().at(0);
    while (!stop_.load()) {
      pollfd entry{watch.fd, POLLIN, 0};
      if (poll(&entry, 1, 1) > 0) transport_.serve(watch.key);
    }
  }
  Transport& transport_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class ShmWorld {
 public:
  explicit ShmWorld(int size, bool read_processes = true) {
    for (int rank = 0; rank < size; ++rank) {
      auto made = ShmTransport::create({.rank = rank, .world_size = size, .read_processes = read_processes});
      EXPECT_TRUE(made.ok()) << made.status().message();
      ranks_.push_back(std::move(*made));
      watchers_.push_back(std::make_unique<WatchThread>(*ranks_.back()));
    }
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to)
        if (from != to) {
          const Status status = rank(from).connect(to, rank(to).address(), Deadline::after_us(10'000'000));
          EXPECT_TRUE(status.ok()) << status.message();
        }
  }
  ~ShmWorld() {
    watchers_.clear();
    ranks_.clear();
  }

  ShmTransport& rank(int r) { return *ranks_[static_cast<size_t>(r)]; }
  // The rank leaves the world, saying goodbye.
  void leave(int r) {
    watchers_[static_cast<size_t>(r)].reset();
    ranks_[static_cast<size_t>(r)].reset();
  }

  // Polls all ranks once; the completions of rank `r` are appended to done[r].
  void poll(std::vector<std::vector<Completion>>& done) {
    done.resize(ranks_.size());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r] == nullptr) continue;
      std::array<Completion, 16> found;
      const size_t count = ranks_[r]->poll(found);
      done[r].insert(done[r].end(), found.begin(), found.begin() + static_cast<ptrdiff_t>(count));
    }
  }
  // Polls until rank `r` has `count` completions in all, and gives them.
  std::vector<Completion> wait(int r, size_t count) {
    const Deadline deadline = Deadline::after_us(20'000'000);
    while (done_.size() <= static_cast<size_t>(r) || done_[static_cast<size_t>(r)].size() < count) {
      poll(done_);
      if (deadline.passed()) {
        ADD_FAILURE() << "rank " << r << " waits for " << count << " completions";
        break;
      }
    }
    done_.resize(ranks_.size());
    return std::exchange(done_[static_cast<size_t>(r)], {});
  }

 private:
  std::vector<std::unique_ptr<ShmTransport>> ranks_;
  std::vector<std::unique_ptr<WatchThread>> watchers_;
  std::vector<std::vector<Completion>> done_;
};

}  // namespace tutti::internal::testing
