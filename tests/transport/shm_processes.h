// Ranks of shm as processes of their own, forked by a test.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/transport/shm_world.h"

namespace tutti::internal::testing {

inline constexpr int kMostProcesses = 16;

// What the processes of a test share beside the transport: their addresses, and marks for the course of the test.
struct Board {
  std::array<std::atomic<uint32_t>, kMostProcesses> address_bytes{};
  std::array<std::array<char, 512>, kMostProcesses> addresses{};
  std::array<std::atomic<int>, 16> marks{};
};

// One rank, inside its process.
class ProcessRank {
 public:
  ProcessRank(int rank, int size, Board& board, const ShmTransport::Options& options)
      : rank_(rank), size_(size), board_(board) {
    auto made = ShmTransport::create(options);
    if (!made) {
      ADD_FAILURE() << made.status().message();
      return;
    }
    transport_ = std::move(*made);
    watcher_ = std::make_unique<WatchThread>(*transport_);
    const std::string address = transport_->address();
    std::memcpy(board.addresses[static_cast<size_t>(rank)].data(), address.data(), address.size());
    board.address_bytes[static_cast<size_t>(rank)].store(static_cast<uint32_t>(address.size()));
  }
  ~ProcessRank() { leave(); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  Board& board() { return board_; }
  ShmTransport& transport() { return *transport_; }

  std::string address_of(int peer) {
    auto& bytes = board_.address_bytes[static_cast<size_t>(peer)];
    while (bytes.load() == 0) usleep(1000);
    return {board_.addresses[static_cast<size_t>(peer)].data(), bytes.load()};
  }
  Status connect(int peer) { return transport_->connect(peer, address_of(peer), Deadline::after_us(10'000'000)); }
  void connect_all() {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const Status status = connect(peer);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }

  void mark(int what) { board_.marks[static_cast<size_t>(what)].fetch_add(1); }
  void await(int what, int count) {
    const Deadline deadline = Deadline::after_us(20'000'000);
    while (board_.marks[static_cast<size_t>(what)].load() < count) {
      ASSERT_FALSE(deadline.passed()) << "mark " << what << " was not set " << count << " times";
      usleep(500);
    }
  }

  Post send(int to, uint64_t match, const void* data, size_t bytes, uint64_t channel = 1) {
    const Endpoint end{to, match};
    Post post = Post::later;
    while (post == Post::later) {
      post =
          transport_->post_send({.channel = channel, .to = {&end, 1}, .data = data, .bytes = bytes, .ticket = match});
      if (post == Post::later) poll();
    }
    return post;
  }
  Post recv(int from, uint64_t match, void* data, size_t bytes, uint64_t channel = 1) {
    return transport_->post_recv(
        {.channel = channel, .from = {from, match}, .data = data, .bytes = bytes, .ticket = match});
  }
  void poll() {
    std::array<Completion, 16> found;
    const size_t count = transport_->poll(found);
    done_.insert(done_.end(), found.begin(), found.begin() + static_cast<ptrdiff_t>(count));
  }
  // Polls until something completes.
  Completion wait() {
    const Deadline deadline = Deadline::after_us(20'000'000);
    while (done_.empty()) {
      poll();
      if (deadline.passed()) {
        ADD_FAILURE() << "rank " << rank_ << " waits for a completion";
        return {};
      }
    }
    const Completion first = done_.front();
    done_.erase(done_.begin());
    return first;
  }
  // Sends or receives, to the end.
  void send_and_wait(int to, uint64_t match, const void* data, size_t bytes) {
    const Post post = send(to, match, data, bytes);
    ASSERT_NE(post, Post::failed);
    if (post == Post::posted) {
      EXPECT_EQ(wait().code, Code::ok);
    }
  }
  void recv_and_wait(int from, uint64_t match, void* data, size_t bytes) {
    const Post post = recv(from, match, data, bytes);
    ASSERT_NE(post, Post::failed);
    if (post == Post::posted) {
      EXPECT_EQ(wait().code, Code::ok);
    }
  }
  PeerFailure await_failure() {
    const Deadline deadline = Deadline::after_us(10'000'000);
    for (;;) {
      PeerFailure failure = transport_->take_failure();
      if (failure.peer >= 0 || deadline.passed()) return failure;
      poll();
      transport_->idle(Deadline::after_us(1000));
    }
  }
  // Goodbye.
  void leave() {
    watcher_.reset();
    transport_.reset();
  }

 private:
  int rank_;
  int size_;
  Board& board_;
  std::unique_ptr<ShmTransport> transport_;
  std::unique_ptr<WatchThread> watcher_;
  std::vector<Completion> done_;
};

struct ProcessOptions {
  bool read_processes = true;
  std::function<void(int rank)> before;  // in the process, before the transport is made
};

// Runs `body` as `size` processes and gives their wait statuses: 0 where everything it expected was so.
inline std::vector<int> run_processes(int size, const std::function<void(ProcessRank&)>& body,
                                      const ProcessOptions& options = {}) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* board = new (memory) Board;
  std::vector<pid_t> pids;
  std::fflush(nullptr);
  for (int rank = 0; rank < size; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (options.before) options.before(rank);
      {
        ProcessRank self(rank, size, *board,
                         {.rank = rank, .world_size = size, .read_processes = options.read_processes});
        if (!::testing::Test::HasFailure()) body(self);
      }
      std::fflush(nullptr);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    pids.push_back(pid);
  }
  std::vector<int> statuses;
  for (const pid_t pid : pids) {
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    statuses.push_back(status);
  }
  munmap(memory, sizeof(Board));
  return statuses;
}

}  // namespace tutti::internal::testing
