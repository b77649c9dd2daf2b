// The MPI side of a comparison (peer.h): all_reduce, broadcast, reduce, all_gather and barrier.
//
//   mpirun -n 2 mpi_perf all_reduce 100 8 4096 262144 16777216
#include <mpi.h>

#include <functional>
#include <map>

#include "peer.h"

namespace {

class Mpi final : public tutti::peers::Peer {
 public:
  Mpi() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  bool prepare(const std::string& operation, tutti::peers::Buffers& b, int count) override {
    float* const in = b.input.data();
    float* const out = b.output.data();
    const std::map<std::string, std::function<void()>> operations{
        {"all_reduce", [=] { MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }},
        {"broadcast", [=] { MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD); }},
        {"reduce", [=] { MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); }},
        {"all_gather", [=] { MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD); }},
        {"barrier", [] { MPI_Barrier(MPI_COMM_WORLD); }}};
    const auto found = operations.find(operation);
    if (found == operations.end()) return false;
    run_ = found->second;
    return true;
  }
  void run() override { run_(); }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void max(std::vector<double>& values) override {
    const std::vector<double> own = values;
    MPI_Reduce(own.data(), values.data(), static_cast<int>(own.size()), MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  }

 private:
  int rank_ = 0, size_ = 1;
  std::function<void()> run_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Mpi mpi;
  const int status = run_peer(mpi, argc, argv);
  MPI_Finalize();
  return status;
}
