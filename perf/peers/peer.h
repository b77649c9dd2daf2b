// What the other side of a comparison does, whatever library it is of: times an operation in the way of tutti-perf
// (each call after a barrier, per call the slowest rank, then min, p50 and p99 over the calls; loop: the mean from one
// call to the next, barrier included) and prints one JSON object a row, on rank 0. Results are checked: "wrong" is the
// number of ranks that hold a wrong element.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace tutti::peers {

struct Buffers {
  std::vector<float> input, output;
};

// A library; all ranks call the same in the same order.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Makes ready for run(). False: it has no such operation.
  virtual bool prepare(const std::string& operation, Buffers& buffers, int count) = 0;
  virtual void run() = 0;
  virtual void barrier() = 0;
  // The greatest of all ranks' values, place by place, on rank 0.
  virtual void max(std::vector<double>& values) = 0;
};

// What rank `rank` puts in, small enough that every order of summation is exact.
inline float value(int rank, int i) { return static_cast<float>((i % 97) + rank + 1); }

inline bool is_right(const std::string& operation, const Buffers& b, int count, int rank, int size) {
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < size; ++r) sum += value(r, i);
    if (operation == "all_reduce" && b.output[i] != sum) return false;
    if (operation == "reduce" && rank == 0 && b.output[i] != sum) return false;
    if (operation == "broadcast" && b.output[i] != value(0, i)) return false;
    for (int r = 0; operation == "all_gather" && r < size; ++r)
      if (b.output[static_cast<size_t>(r) * count + i] != value(r, i)) return false;
  }
  return true;
}

inline double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Per call the slowest rank's microseconds, sorted, on rank 0; and the mean of the loop.
struct Timing {
  std::vector<double> us;
  double loop_us;
};

inline Timing measure(Peer& peer, int calls, int warm_up) {
  std::vector<double> us;
  us.reserve(static_cast<size_t>(calls));
  double begin = 0;
  for (int i = -warm_up; i < calls; ++i) {
    if (i == 0) begin = now_us();
    peer.barrier();
    const double start = now_us();
    peer.run();
    if (i >= 0) us.push_back(now_us() - start);
  }
  const double loop_us = (now_us() - begin) / calls;
  peer.max(us);
  std::sort(us.begin(), us.end());
  return {us, loop_us};
}

inline bool run_size(Peer& peer, const std::string& operation, int calls, long bytes) {
  const int count = static_cast<int>(bytes / static_cast<long>(sizeof(float)));
  Buffers b;
  b.input.resize(static_cast<size_t>(count));
  b.output.resize(static_cast<size_t>(count) * peer.size());
  for (int i = 0; i < count; ++i) b.input[i] = value(peer.rank(), i);
  if (operation == "broadcast" && peer.rank() == 0) std::copy(b.input.begin(), b.input.end(), b.output.begin());
  if (!peer.prepare(operation, b, count)) return false;
  const auto [us, loop_us] = measure(peer, calls, calls / 10);
  std::vector<double> wrong(static_cast<size_t>(peer.size()));
  wrong[static_cast<size_t>(peer.rank())] = is_right(operation, b, count, peer.rank(), peer.size()) ? 0 : 1;
  peer.max(wrong);
  if (peer.rank() == 0)
    std::printf(
        "{\"op\": \"%s\", \"bytes\": %ld, \"ranks\": %d, \"min\": %.3f, \"p50\": %.3f, \"p99\": %.3f, \"loop\": %.3f, "
        "\"wrong\": %d}\n",
        operation.c_str(), bytes, peer.size(), us.front(), us[us.size() / 2], us[us.size() * 99 / 100], loop_us,
        static_cast<int>(std::count(wrong.begin(), wrong.end(), 1.0)));
  return true;
}

// PROGRAM OPERATION CALLS BYTES...: so many calls of each size, after a tenth of that; the program's exit status.
inline int run_peer(Peer& peer, int argc, char** argv) {
  const int calls = argc > 3 ? std::atoi(argv[2]) : 0;
  bool is_done = calls > 0;
  for (int i = 3; i < argc && is_done; ++i) is_done = run_size(peer, argv[1], calls, std::atol(argv[i]));
  if (is_done) return 0;
  if (peer.rank() == 0) std::fprintf(stderr, "usage: %s OPERATION CALLS BYTES...\n", argv[0]);
  return 2;
}

}  // namespace tutti::peers
