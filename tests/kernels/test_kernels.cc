// Every kernel against the reference, over counts, alignments, numbers of operands and instruction sets; in place; at
// the edges of mapped memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "tests/kernels/kernel_cases.h"

namespace tutti_test {
namespace {

constexpr int kMostOperands = 9;

// TUTTI_TEST_SEED repeats a run.
std::mt19937_64 seeded() {
  const char* text = std::getenv("TUTTI_TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
  std::cout << "seed " << seed << "\n";
  return std::mt19937_64(seed);
}

TEST(Kernels, ReduceOperandsInOrderIntoTheirDestination) {
  const float a[] = {1, 2, 3}, b[] = {10, 20, 30}, c[] = {100, 200, 300};
  const void* sources[] = {a, b, c};
  float sum[3];
  const ReduceKernel kernel = kernel_for(DataType::float32, ReduceOp::sum);
  kernel(sum, sources, 3, 3, 0);
  EXPECT_EQ(sum[0], 111);
  EXPECT_EQ(sum[1], 222);
  EXPECT_EQ(sum[2], 333);

  kernel_for(DataType::float32, ReduceOp::average)(sum, sources, 3, 3, 3);
  EXPECT_EQ(sum[0], 37);
}

TEST(Kernels, ExistForDefinedPairsOnly) {
  for (int type = -2; type <= kDataTypeCount + 1; ++type)
    for (int op = -2; op <= kReduceOpCount + 1; ++op) {
      const bool known = type >= 0 && type < kDataTypeCount && op >= 0 && op < kReduceOpCount;
      const auto t = static_cast<DataType>(type);
      const auto o = static_cast<ReduceOp>(op);
      EXPECT_EQ(kernel_for(t, o) != nullptr, known && is_defined(o, t)) << "type " << type << " op " << op;
    }
}

TEST(Kernels, AreOthersOnEachInstructionSet) {
  std::cout << "best instruction set: " << kernel_target_name() << "\n";
  std::vector<ReduceKernel> kernels;
  on_each_target([&] { kernels.push_back(kernel_for(DataType::float32, ReduceOp::sum)); });
  const size_t count = kernels.size();
  std::sort(kernels.begin(), kernels.end());
  EXPECT_EQ(std::unique(kernels.begin(), kernels.end()) - kernels.begin(), static_cast<ptrdiff_t>(count));
  EXPECT_EQ(kernel_for(DataType::float32, ReduceOp::sum), kernel_for(DataType::float32, ReduceOp::sum));
}

TEST(Kernels, OperatorsAreNotEachOther) {
  for (DataType type : kIntegerTypes) {
    const size_t width = type_bytes(type);
    std::vector<Bytes> operands(2, Bytes(width));
    operands[0][0] = 12;
    operands[1][0] = 10;
    const std::pair<ReduceOp, int> wanted[] = {{ReduceOp::sum, 22},    {ReduceOp::product, 120}, {ReduceOp::min, 10},
                                               {ReduceOp::max, 12},    {ReduceOp::average, 22},  {ReduceOp::bit_and, 8},
                                               {ReduceOp::bit_or, 14}, {ReduceOp::bit_xor, 6}};
    for (const auto& [op, value] : wanted)
      EXPECT_EQ(run_kernel({type, op}, operands)[0], value) << to_string({type, op});
  }
}

// The operands of one case, each with room for every offset and the reference's result.
struct Grid {
  Kind kind;
  std::vector<Bytes> operands;
  Bytes wanted;
};

// Runs `count` elements with dst and operands at offsets that all differ, and looks at the bytes around the result.
std::string run_at(const Grid& grid, size_t count, size_t offset, std::vector<Bytes>& shifted, Bytes& dst) {
  constexpr uint8_t kUntouched = 0xC3;
  const size_t bytes = count * type_bytes(grid.kind.type);
  std::vector<const void*> sources;
  for (size_t k = 0; k < grid.operands.size(); ++k) {
    const size_t at = (offset + 5 * k) % 64;
    if (bytes != 0) std::memcpy(shifted[k].data() + at, grid.operands[k].data(), bytes);
    sources.push_back(shifted[k].data() + at);
  }
  std::fill_n(dst.begin(), offset + bytes + 64, kUntouched);
  const auto operands = static_cast<int>(grid.operands.size());
  const uint32_t divisor = grid.kind.op == ReduceOp::average ? static_cast<uint32_t>(operands) : 0;
  kernel_for(grid.kind.type, grid.kind.op)(dst.data() + offset, sources.data(), operands, count, divisor);
  const auto untouched = [](uint8_t byte) { return byte == kUntouched; };
  const auto begin = dst.begin() + static_cast<ptrdiff_t>(offset), end = begin + static_cast<ptrdiff_t>(bytes);
  if (!std::all_of(dst.begin(), begin, untouched)) return "bytes before dst were written";
  if (!std::all_of(end, end + 64, untouched)) return "bytes after dst were written";
  return difference(grid.kind, dst.data() + offset, grid.wanted, bytes);
}

TEST(Kernels, EqualTheReferenceAtEveryCountAlignmentAndOperandCount) {
  std::mt19937_64 random = seeded();
  const std::vector<size_t> counts{0,  1,  2,  3,  4,  5,   7,   8,   15,  16,  17,
                                   31, 33, 63, 64, 65, 127, 129, 255, 257, 515, 1000};
  const size_t longest = counts.back();
  std::vector<Bytes> shifted(kMostOperands, Bytes(longest * 8 + 64));
  Bytes dst(longest * 8 + 192);
  for (Kind kind : all_kinds())
    for (size_t operands = 1; operands <= kMostOperands; ++operands) {
      SCOPED_TRACE(to_string(kind) + " of " + std::to_string(operands));
      Grid grid{kind, {}, {}};
      while (grid.operands.size() < operands) grid.operands.push_back(random_elements(kind.type, longest, random));
      grid.wanted =
          reduce(kind.type, kind.op, grid.operands, kind.op == ReduceOp::average ? static_cast<uint32_t>(operands) : 0);
      on_each_target([&] {
        for (size_t count : counts)
          for (size_t offset = 0; offset < 64; offset += count < 300 ? 1 : 7)
            ASSERT_EQ(run_at(grid, count, offset, shifted, dst), "") << "count " << count << " offset " << offset;
      });
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(Kernels, TakeAsManyOperandsAsAStepHas) {
  std::mt19937_64 random = seeded();
  for (Kind kind : all_kinds()) {
    SCOPED_TRACE(to_string(kind));
    std::vector<Bytes> operands;
    while (operands.size() < kMaxOperands) operands.push_back(random_elements(kind.type, 300, random));
    const uint32_t divisor = kind.op == ReduceOp::average ? kMaxOperands : 0;
    EXPECT_EQ(difference(kind, run_kernel(kind, operands, divisor), reduce(kind.type, kind.op, operands, divisor)), "");
  }
}

TEST(Kernels, WriteOverAnyOneOfTheirOperands) {
  std::mt19937_64 random = seeded();
  for (Kind kind : all_kinds())
    for (size_t operands : {1, 2, 3, 4, 5, 8})
      for (size_t count : {1, 3, 7, 33, 70, 1000, 1111}) {
        std::vector<Bytes> values;
        while (values.size() < operands) values.push_back(random_elements(kind.type, count, random));
        const uint32_t divisor = kind.op == ReduceOp::average ? 3 : 0;
        const Bytes wanted = reduce(kind.type, kind.op, values, divisor);
        on_each_target([&] {
          for (size_t own = 0; own < operands; ++own) {
            std::vector<Bytes> memory = values;
            std::vector<const void*> sources;
            for (const Bytes& operand : memory) sources.push_back(operand.data());
            kernel_for(kind.type, kind.op)(memory[own].data(), sources.data(), static_cast<int>(operands), count,
                                           divisor);
            ASSERT_EQ(difference(kind, memory[own], wanted), "")
                << to_string(kind) << ", " << count << " elements over operand " << own << " of " << operands;
          }
        });
      }
}

// Pages with an unmapped one before and behind them.
class Island {
 public:
  explicit Island(size_t pages) : bytes_(pages * page()) {
    map_ = static_cast<uint8_t*>(mmap(nullptr, bytes_ + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(begin(), bytes_, PROT_READ | PROT_WRITE), 0);
  }
  ~Island() { munmap(map_, bytes_ + 2 * page()); }
  Island(const Island&) = delete;
  Island& operator=(const Island&) = delete;
  uint8_t* begin() { return map_ + page(); }
  uint8_t* end() { return begin() + bytes_; }

 private:
  static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  size_t bytes_;
  uint8_t* map_;
};

TEST(Kernels, TouchNothingBesideTheirOperands) {
  Island a(1), b(1), dst(1);
  for (Kind kind : all_kinds())
    on_each_target([&] {
      for (size_t count = 0; count < 200; ++count) {
        const size_t bytes = count * type_bytes(kind.type);
        const ReduceKernel kernel = kernel_for(kind.type, kind.op);
        const void* at_begin[] = {a.begin(), b.begin()};
        kernel(dst.begin(), at_begin, 2, count, 0);
        const void* at_end[] = {a.end() - bytes, b.end() - bytes};
        kernel(dst.end() - bytes, at_end, 2, count, 0);  // an overrun ends the test program
      }
    });
}

}  // namespace
}  // namespace tutti_test
