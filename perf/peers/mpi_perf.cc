// The MPI side of a comparison: times all_reduce, broadcast, reduce, all_gather and barrier in the way of tutti-perf
// (each call after a barrier, per call the slowest rank, then min, p50 and p99 over the calls; loop: the mean from one
// call to the next, barrier included) and prints one JSON object a row. Results are checked: a call with a wrong
// element counts in "wrong".
//
//   mpirun -n 2 mpi_perf all_reduce 8 4096 262144 16777216
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Buffers {
  std::vector<float> input, output;
};

using Run = void (*)(Buffers&, int count);

void run_all_reduce(Buffers& b, int count) {
  MPI_Allreduce(b.input.data(), b.output.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
void run_broadcast(Buffers& b, int count) { MPI_Bcast(b.output.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD); }
void run_reduce(Buffers& b, int count) {
  MPI_Reduce(b.input.data(), b.output.data(), count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}
void run_all_gather(Buffers& b, int count) {
  MPI_Allgather(b.input.data(), count, MPI_FLOAT, b.output.data(), count, MPI_FLOAT, MPI_COMM_WORLD);
}
void run_barrier(Buffers&, int) { MPI_Barrier(MPI_COMM_WORLD); }

struct Operation {
  const char* name;
  Run run;
};
constexpr Operation kOperations[] = {{"all_reduce", run_all_reduce},
                                     {"broadcast", run_broadcast},
                                     {"reduce", run_reduce},
                                     {"all_gather", run_all_gather},
                                     {"barrier", run_barrier}};

// What rank `rank` puts in, small enough that every order of summation is exact.
float value(int rank, int i) { return static_cast<float>((i % 97) + rank + 1); }

void fill(const std::string& name, Buffers& b, int count, int rank) {
  for (int i = 0; i < count; ++i) b.input[i] = value(rank, i);
  if (name == "broadcast" && rank == 0) std::copy(b.input.begin(), b.input.begin() + count, b.output.begin());
}

bool is_right(const std::string& name, const Buffers& b, int count, int rank, int size) {
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < size; ++r) sum += value(r, i);
    if (name == "all_reduce" && b.output[i] != sum) return false;
    if (name == "reduce" && rank == 0 && b.output[i] != sum) return false;
    if (name == "broadcast" && b.output[i] != value(0, i)) return false;
    for (int r = 0; name == "all_gather" && r < size; ++r)
      if (b.output[static_cast<size_t>(r) * count + i] != value(r, i)) return false;
  }
  return true;
}

// Per call the slowest rank's microseconds, sorted, on rank 0; and the mean of the loop.
struct Timing {
  std::vector<double> us;
  double loop_us;
};

Timing measure(const Operation& operation, Buffers& b, int count, int calls, int warm_up) {
  std::vector<double> own, slowest(static_cast<size_t>(calls));
  double begin = 0;
  for (int i = -warm_up; i < calls; ++i) {
    if (i == 0) begin = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    operation.run(b, count);
    if (i >= 0) own.push_back((MPI_Wtime() - start) * 1e6);
  }
  const double loop_us = (MPI_Wtime() - begin) * 1e6 / calls;
  MPI_Reduce(own.data(), slowest.data(), calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  std::sort(slowest.begin(), slowest.end());
  return {slowest, loop_us};
}

void run_size(const Operation& operation, long bytes, int rank, int size) {
  const int count = static_cast<int>(bytes / static_cast<long>(sizeof(float)));
  const int calls = static_cast<int>(std::clamp(400'000'000L / (bytes + 4000), 30L, 20'000L));
  Buffers b;
  b.input.resize(static_cast<size_t>(count));
  b.output.resize(static_cast<size_t>(count) * size);
  fill(operation.name, b, count, rank);
  const auto [us, loop_us] = measure(operation, b, count, calls, std::max(calls / 10, 5));
  const int wrong = is_right(operation.name, b, count, rank, size) ? 0 : 1;
  int all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf(
        "{\"op\": \"%s\", \"bytes\": %ld, \"ranks\": %d, \"min\": %.3f, \"p50\": %.3f, \"p99\": %.3f, \"loop\": %.3f, "
        "\"wrong\": %d}\n",
        operation.name, bytes, size, us.front(), us[us.size() / 2], us[us.size() * 99 / 100], loop_us, all_wrong);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string wanted = argc > 1 ? argv[1] : "";
  const auto* operation = std::find_if(std::begin(kOperations), std::end(kOperations),
                                       [&](const Operation& o) { return wanted == o.name; });
  if (operation == std::end(kOperations) || argc < 3) {
    if (rank == 0) std::fprintf(stderr, "usage: mpi_perf all_reduce|broadcast|reduce|all_gather|barrier BYTES...\n");
    MPI_Finalize();
    return 2;
  }
  for (int i = 2; i < argc; ++i) run_size(*operation, std::atol(argv[i]), rank, size);
  MPI_Finalize();
  return 0;
}
