// What the shared-memory transport costs, without the layers above it: two processes, one core each, in µs.
//
//   bench_shm [filter [stream]]   rows whose name contains `filter`; stream: as if processes might not read each other
//
// ping    half a round trip of a message in the form that the transport chooses for this memory
// copy    a message of fresh bytes into the receiver's memory, until the sender's memory is free again
// reduce  both ranks offer their operand and reduce both: the exchange of an all_reduce
// Each figure is the median of batches (and the least one), for the machine may be shared.
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/cpu_relax.h"
#include "transport/shm/shm_transport.h"

namespace tutti::internal {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;
constexpr int kBatches = 15;

// Stands for the library's kernels: as fast as memory for two operands.
void add_floats(void* dst, const void* const* sources, int count, size_t elements, uint32_t) {
  using Vector [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
  const size_t vectors = elements / 8;
  auto* const out = static_cast<Vector*>(dst);
  for (size_t i = 0; i < vectors; ++i) {
    Vector sum = static_cast<const Vector*>(sources[0])[i];
    for (int s = 1; s < count; ++s) sum += static_cast<const Vector*>(sources[s])[i];
    out[i] = sum;
  }
  for (size_t i = vectors * 8; i < elements; ++i) {
    float sum = 0;
    for (int s = 0; s < count; ++s) sum += static_cast<const float*>(sources[s])[i];
    static_cast<float*>(dst)[i] = sum;
  }
}

void fail(const std::string& what) {
  std::fprintf(stderr, "bench_shm: %s\n", what.c_str());
  std::_Exit(1);
}

// One of the two ranks.
class Rank {
 public:
  Rank(int rank, int channel, bool read_processes) : rank_(rank) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(rank, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    auto made = ShmTransport::create({.rank = rank, .world_size = 2, .read_processes = read_processes});
    if (!made) fail(made.status().message());
    transport_ = std::move(*made);
    std::string own = transport_->address();
    std::string other(own.size(), '\0');
    if (write(channel, own.data(), own.size()) < 0 || read(channel, other.data(), other.size()) < 0) fail("exchange");
    watcher_ = std::thread([this] {
      while (!stop_.load()) {
        transport_->serve(0);
        usleep(1000);
      }
    });
    const Status status = transport_->connect(1 - rank, other, Deadline::after_us(10'000'000));
    if (!status.ok()) fail(status.message());
    stop_.store(true);
    usleep(20000);  // the peer's attempt may need our side for a moment longer
    watcher_.join();
    transport_->serve(0);
    auto window = transport_->allocate(3 * kMostBytes);
    if (!window) fail(window.status().message());
    window_ = static_cast<std::byte*>(*window);
    heap_.resize(3 * kMostBytes);
  }

  int rank() const { return rank_; }
  std::byte* memory(bool window) { return window ? window_ : heap_.data(); }

  void send(const void* data, size_t bytes) {
    const Endpoint to{1 - rank_, ++sent_};
    const SendRequest request{.channel = 1, .to = {&to, 1}, .data = data, .bytes = bytes, .ticket = 1};
    Post post = Post::later;
    while ((post = transport_->post_send(request)) == Post::later) wait_one();
    pending_ += post == Post::posted;
  }
  void recv(void* data, size_t bytes) {
    const Post post = transport_->post_recv(
        {.channel = 1, .from = {1 - rank_, ++received_}, .data = data, .bytes = bytes, .ticket = 2});
    pending_ += post == Post::posted;
  }
  void reduce(void* dst, const void* own, size_t bytes) {
    std::array<ReduceOperand, 2> operands;
    operands[static_cast<size_t>(rank_)].local = own;
    operands[static_cast<size_t>(1 - rank_)].from = {1 - rank_, ++received_};
    const Post post = transport_->post_reduce({.channel = 1,
                                               .operands = operands,
                                               .dst = dst,
                                               .element_count = bytes / 4,
                                               .reduction = {add_floats, 4, 0},
                                               .ticket = 3});
    pending_ += post == Post::posted;
  }
  void finish() {
    while (pending_ > 0) wait_one();
  }
  void barrier() {
    char token = 0;
    recv(&token, 1);
    send(&token, 1);
    finish();
  }

 private:
  void wait_one() {
    std::array<Completion, 8> done;
    const size_t count = transport_->poll(done);
    for (size_t i = 0; i < count; ++i)
      if (done[i].code != Code::ok) fail("a message failed");
    pending_ -= static_cast<int>(count);
    if (count == 0) cpu_relax();
  }

  int rank_;
  std::unique_ptr<ShmTransport> transport_;
  std::thread watcher_;
  std::atomic<bool> stop_{false};
  std::byte* window_ = nullptr;
  std::vector<std::byte> heap_;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  int pending_ = 0;
};

void ping(Rank& self, size_t bytes, std::byte* memory) {
  if (self.rank() == 0) self.send(memory, bytes);
  self.recv(memory + kMostBytes, bytes);
  self.finish();
  if (self.rank() == 1) self.send(memory, bytes);
  self.finish();
}

void copy(Rank& self, size_t bytes, std::byte* memory) {
  if (self.rank() == 0) {
    std::memset(memory, 1, bytes);
    self.send(memory, bytes);
  } else {
    self.recv(memory + kMostBytes, bytes);
  }
  self.finish();
  self.barrier();
}

void touch(Rank& self, size_t bytes, std::byte* memory) {
  if (self.rank() == 0) std::memset(memory, 1, bytes);
  self.barrier();
}

void reduce(Rank& self, size_t bytes, std::byte* memory) {
  self.send(memory, bytes);
  self.reduce(memory + kMostBytes, memory, bytes);
  self.finish();
}

using Step = void (*)(Rank&, size_t, std::byte*);

struct Figure {
  double median;
  double least;
};

Figure measure(Rank& self, Step step, size_t bytes, bool window) {
  const int repeats = static_cast<int>(std::clamp<size_t>((size_t{4} << 20) / (bytes + 1), 2, 2000));
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    self.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) step(self, bytes, self.memory(window));
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / repeats;
    batches.push_back(us);
  }
  std::sort(batches.begin(), batches.end());
  return {batches[kBatches / 2], batches.front()};
}

void run(Rank& self, const std::string& filter) {
  const std::array<size_t, 16> sizes{8,    64,    128,   220,   256,    512,     1024,    4096,
                                     8192, 16384, 32768, 65536, 262144, 1 << 20, 4 << 20, kMostBytes};
  if (self.rank() == 0) std::printf("%-8s %-7s %10s %10s %10s\n", "what", "memory", "bytes", "median", "least");
  const auto row = [&](const char* what, bool window, size_t bytes, Figure figure) {
    if (self.rank() == 0)
      std::printf("%-8s %-7s %10zu %10.3f %10.3f\n", what, window ? "window" : "malloc", bytes, figure.median,
                  figure.least);
    std::fflush(stdout);
  };
  for (const bool window : {true, false})
    for (const size_t bytes : sizes) {
      if (std::string("ping").find(filter) != std::string::npos) {
        const Figure figure = measure(self, ping, bytes, window);
        row("ping", window, bytes, {figure.median / 2, figure.least / 2});
      }
      if (std::string("copy").find(filter) != std::string::npos && bytes >= 4096) {
        const Figure with = measure(self, copy, bytes, window);
        const Figure without = measure(self, touch, bytes, window);
        row("copy", window, bytes, {with.median - without.median, with.least - without.least});
      }
      if (std::string("reduce").find(filter) != std::string::npos)
        row("reduce", window, bytes, measure(self, reduce, bytes, window));
    }
  self.barrier();
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) {
  std::array<int, 2> channel;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, channel.data()) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  const int rank = child == 0 ? 1 : 0;
  {
    tutti::internal::Rank self(rank, channel[static_cast<size_t>(rank)], argc <= 2);
    tutti::internal::run(self, argc > 1 ? argv[1] : "");
  }
  if (rank == 1) std::_Exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
