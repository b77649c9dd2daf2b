// What the reduction kernels reach by themselves: bytes read and written per second, by type, operator, number of
// operands and size. One thread; dst is memory of its own. Run it pinned: taskset -c 1 bench_kernels
// --benchmark_filter=float32
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "algo/kernels/kernels.h"

namespace {

using tutti::internal::DataType;
using tutti::internal::ReduceOp;

void reduce(benchmark::State& state, DataType type, ReduceOp op) {
  const auto operands = static_cast<size_t>(state.range(0)), bytes = static_cast<size_t>(state.range(1));
  const size_t count = bytes / tutti::internal::type_bytes(type);
  // Zero bits are an ordinary value of each type.
  std::vector<std::vector<char>> memory(operands + 1, std::vector<char>(bytes, 0));
  std::vector<const void*> sources;
  for (size_t k = 0; k < operands; ++k) sources.push_back(memory[k].data());
  const uint32_t divisor = op == ReduceOp::average ? static_cast<uint32_t>(operands) : 0;
  const auto kernel = tutti::internal::kernel_for(type, op);
  for (auto _ : state) {
    kernel(memory[operands].data(), sources.data(), static_cast<int>(operands), count, divisor);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * (operands + 1) * bytes));
}

void add(DataType type, ReduceOp op) {
  const std::string title = std::string(name(type)) + "/" + name(op);
  benchmark::RegisterBenchmark(title.c_str(), reduce, type, op)
      ->ArgNames({"operands", "bytes"})
      ->ArgsProduct({{2, 3, 4, 8}, {64, 4 << 10, 256 << 10, 16 << 20}});
}

}  // namespace

int main(int argc, char** argv) {
  for (int type = 0; type < tutti::internal::kDataTypeCount; ++type)
    for (int op = 0; op < tutti::internal::kReduceOpCount; ++op)
      if (is_defined(static_cast<ReduceOp>(op), static_cast<DataType>(type)))
        add(static_cast<DataType>(type), static_cast<ReduceOp>(op));
  benchmark::AddCustomContext("instruction set", tutti::internal::kernel_target_name());
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
