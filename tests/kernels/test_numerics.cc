// The numbers that other libraries got wrong: wrapping, unsigned order, rounding of small floats, NaN, signed zero,
// denormals, averages. Each on every instruction set.
#include <numeric>

#include "tests/kernels/kernel_cases.h"

namespace tutti_test {
namespace {

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// `value` as an element of a float type.
Bytes float_element(DataType type, double value) {
  return with_type(type, [&]<class Access>() {
    const auto bits = Access::bits(static_cast<typename Access::Value>(value));
    return bytes_of(std::vector{bits});
  });
}

Bytes repeated(const Bytes& element, size_t count) {
  Bytes bytes;
  for (size_t i = 0; i < count; ++i) bytes.insert(bytes.end(), element.begin(), element.end());
  return bytes;
}

TEST(Numerics, SumsOfInt16WrapAtEveryCount) {
  on_each_target([] {
    for (size_t count : {1, 7, 8, 33, 1000}) {
      const std::vector<Bytes> operands(2, bytes_of(std::vector<int16_t>(count, 16384)));
      EXPECT_EQ(run_kernel({DataType::int16, ReduceOp::sum}, operands), bytes_of(std::vector<int16_t>(count, -32768)));
    }
  });
}

TEST(Numerics, SumsAndProductsOfTheLargestIntegersWrap) {
  on_each_target([] {
    for (DataType type : kIntegerTypes)
      for (size_t count : {1, 7, 8, 33, 1000}) {
        // All bits but the sign's: 2^(n-1) - 1. Twice it is 2^n - 2, its square 2^(2n-2) - 2^n + 1: 1.
        Bytes largest(type_bytes(type), 0xFF), doubled(type_bytes(type), 0xFF), squared(type_bytes(type), 0);
        largest.back() = 0x7F;
        doubled.front() = 0xFE;
        squared.front() = 1;
        const std::vector<Bytes> operands(2, repeated(largest, count));
        EXPECT_EQ(run_kernel({type, ReduceOp::sum}, operands), repeated(doubled, count));
        EXPECT_EQ(run_kernel({type, ReduceOp::product}, operands), repeated(squared, count));
      }
  });
}

template <class T>
void unsigned_order(DataType type) {
  const T top = static_cast<T>(T{1} << (sizeof(T) * 8 - 1)), all = std::numeric_limits<T>::max();
  std::vector<T> a, b, low, high;
  for (int repeat = 0; repeat < 9; ++repeat)
    for (T x : {T{0}, T{1}, top, all})
      for (T y : {T{0}, T{1}, top, all}) {
        a.push_back(x), b.push_back(y);
        low.push_back(x < y ? x : y), high.push_back(x < y ? y : x);
      }
  EXPECT_EQ(run_kernel({type, ReduceOp::min}, {bytes_of(a), bytes_of(b)}), bytes_of(low));
  EXPECT_EQ(run_kernel({type, ReduceOp::max}, {bytes_of(a), bytes_of(b)}), bytes_of(high));
}

TEST(Numerics, UnsignedMinAndMaxCompareUnsigned) {
  on_each_target([] {
    unsigned_order<uint8_t>(DataType::uint8);
    unsigned_order<uint16_t>(DataType::uint16);
    unsigned_order<uint32_t>(DataType::uint32);
    unsigned_order<uint64_t>(DataType::uint64);
  });
}

TEST(Numerics, MinAndMaxAreNanWhereverTheNanComesFrom) {
  on_each_target([] {
    for (DataType type : kFloatTypes)
      for (double nan : {double{NAN}, -double{NAN}}) {
        std::array<double, 4> order{1, nan, 3, 4};
        std::array<int, 4> index{0, 1, 2, 3};
        do {
          std::vector<Bytes> operands;
          for (int i : index) operands.push_back(repeated(float_element(type, order[static_cast<size_t>(i)]), 70));
          for (ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::sum, ReduceOp::product})
            EXPECT_EQ(run_kernel({type, op}, operands), repeated(float_element(type, NAN), 70))
                << to_string({type, op});
        } while (std::next_permutation(index.begin(), index.end()));
      }
  });
}

TEST(Numerics, EveryNanBecomesTheSameQuietOne) {
  const std::vector<uint32_t> nans{0x7F800001, 0xFF800001, 0x7FC12345, 0xFFFFFFFF, 0x7FC00000, 0xFFC00000};
  on_each_target([&] {
    for (uint32_t nan : nans)
      for (ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::average}) {
        const auto a = bytes_of(std::vector<uint32_t>(37, nan)), b = bytes_of(std::vector<uint32_t>(37, 0xFFC54321));
        const auto wanted = bytes_of(std::vector<uint32_t>(37, 0x7FC00000));
        EXPECT_EQ(run_kernel({DataType::float32, op}, {a, b}), wanted);
        EXPECT_EQ(run_kernel({DataType::float32, op}, {a}), wanted);
      }
    const auto up = bytes_of(std::vector<float>(37, INFINITY)), down = bytes_of(std::vector<float>(37, -INFINITY));
    EXPECT_EQ(run_kernel({DataType::float32, ReduceOp::sum}, {up, down}),
              bytes_of(std::vector<uint32_t>(37, 0x7FC00000)));
  });
}

TEST(Numerics, MinusZeroIsLessThanZero) {
  on_each_target([] {
    for (DataType type : kFloatTypes)
      for (bool minus_first : {true, false})
        for (size_t count : {1, 3, 8, 70}) {
          const Bytes minus = repeated(float_element(type, -0.0), count),
                      plus = repeated(float_element(type, 0.0), count);
          const std::vector<Bytes> operands = minus_first ? std::vector{minus, plus} : std::vector{plus, minus};
          EXPECT_EQ(run_kernel({type, ReduceOp::min}, operands), minus);
          EXPECT_EQ(run_kernel({type, ReduceOp::max}, operands), plus);
        }
  });
}

TEST(Numerics, OperandsAreAddedFromFirstToLast) {
  on_each_target([] {
    std::vector<Bytes> operands;
    for (float value : {1e8F, 1.0F, -1e8F, 1.0F}) operands.push_back(bytes_of(std::vector<float>(19, value)));
    EXPECT_EQ(run_kernel({DataType::float32, ReduceOp::sum}, operands), bytes_of(std::vector<float>(19, 1.0F)));
  });
}

// All 65,536 values of a 16-bit type.
Bytes all_small_floats() {
  std::vector<uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), uint16_t{0});
  return bytes_of(bits);
}

TEST(Numerics, EverySmallFloatSurvivesAPass) {
  on_each_target([] {
    for (DataType type : {DataType::float16, DataType::bfloat16})
      for (ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
        const Kind kind{type, op};
        const Bytes all = all_small_floats(), result = run_kernel(kind, {all});
        for (size_t at = 0; at < all.size(); at += 2) {
          const Bytes before{all[at], all[at + 1]}, after{result[at], result[at + 1]};
          const auto bits = static_cast<uint16_t>(at / 2);
          const float value = type == DataType::float16 ? decode(bits, 5, 10) : decode(bits, 8, 7);
          ASSERT_EQ(after, std::isnan(value) ? float_element(type, NAN) : before) << to_string(kind) << " " << bits;
        }
      }
  });
}

TEST(Numerics, SmallFloatsAreRoundedOnceToNearestEven) {
  std::mt19937_64 random(1);
  const Bytes all = all_small_floats();
  for (DataType type : {DataType::float16, DataType::bfloat16})
    for (int round = 0; round < 24; ++round) {
      // The same value beside all, so that every exponent meets every other; then in random company.
      Bytes other = repeated({static_cast<uint8_t>(random()), static_cast<uint8_t>(random())}, 65536);
      if (round % 2 == 1)
        for (uint8_t& byte : other) byte = static_cast<uint8_t>(random());
      for (Kind kind : {Kind{type, ReduceOp::sum}, Kind{type, ReduceOp::product}, Kind{type, ReduceOp::average}}) {
        const uint32_t divisor = kind.op == ReduceOp::average ? static_cast<uint32_t>(3 + round) : 0;
        const Bytes wanted = reduce(type, kind.op, {all, other}, divisor);
        on_each_target([&] { ASSERT_EQ(difference(kind, run_kernel(kind, {all, other}, divisor), wanted), ""); });
      }
    }
}

TEST(Numerics, Float16SumsNearTheLimitOverflowToInfinity) {
  const Kind kind{DataType::float16, ReduceOp::sum};
  for (size_t count : {7206, 1000003}) {
    std::mt19937_64 random(count);
    std::vector<Bytes> operands(2, Bytes(2 * count));
    for (Bytes& operand : operands)
      for (size_t i = 0; i < count; ++i) {
        // Uniform in +-65504: the value's size decides how many of the values there are.
        const auto uniform = static_cast<float>(static_cast<double>(random() % 131009) - 65504.0);
        const uint16_t bits = encode(uniform, 5, 10);
        std::memcpy(operand.data() + 2 * i, &bits, 2);
      }
    const Bytes wanted = reduce(kind.type, kind.op, operands, 0);
    on_each_target([&] { EXPECT_EQ(difference(kind, run_kernel(kind, operands), wanted), ""); });
  }
}

TEST(Numerics, SmallFloatsDoNotRoundBetweenOperands) {
  // In float16 each 1 would be lost beside 2048, one after the other.
  std::vector<Bytes> operands(9, repeated(float_element(DataType::float16, 1), 40));
  operands[0] = repeated(float_element(DataType::float16, 2048), 40);
  on_each_target([&] {
    EXPECT_EQ(run_kernel({DataType::float16, ReduceOp::sum}, operands),
              repeated(float_element(DataType::float16, 2056), 40));
  });
}

TEST(Numerics, AveragesOfIntegersRoundTowardZero) {
  std::mt19937_64 random(3);
  for (DataType type : kIntegerTypes)
    for (uint32_t divisor : {1U, 2U, 3U, 7U, 64U, 127U, 255U, 256U, 300U, 4097U, 65535U, 65537U, 4294967295U}) {
      const Bytes values = random_elements(type, 3000, random);
      const Bytes wanted = reduce(type, ReduceOp::average, {values}, divisor);
      on_each_target([&] {
        EXPECT_EQ(
            difference({type, ReduceOp::average}, run_kernel({type, ReduceOp::average}, {values}, divisor), wanted), "")
            << to_string({type, ReduceOp::average}) << " by " << divisor;
      });
    }
}

TEST(Numerics, AveragesAtWholeQuotientsAreExact) {
  // Just below, at and above k * divisor, where a rounded quotient could slip to the next integer.
  for (uint32_t divisor : {3U, 7U, 49U, 641U, 65521U, 1000003U}) {
    std::vector<uint32_t> values;
    for (uint64_t k = 0xFFFFFFFFU / divisor; k > 0 && values.size() < 3000; --k)
      for (uint64_t value : {k * divisor - 1, k * divisor, k * divisor + 1})
        values.push_back(static_cast<uint32_t>(value));
    const Bytes bytes = bytes_of(values);
    const Bytes wanted = reduce(DataType::uint32, ReduceOp::average, {bytes}, divisor);
    on_each_target([&] { EXPECT_EQ(run_kernel({DataType::uint32, ReduceOp::average}, {bytes}, divisor), wanted); });
  }
}

}  // namespace
}  // namespace tutti_test
