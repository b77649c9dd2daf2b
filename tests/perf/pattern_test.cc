// What tutti-perf puts in and expects: every order of combining gives the expected bits, so that a wrong bit is a
// fault.
#include "pattern.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "float_bits.h"

namespace tutti::perf {
namespace {

std::vector<std::byte> input(const Pattern& pattern, int rank, uint64_t call, size_t count, size_t first = 0) {
  std::vector<std::byte> bytes(count * pattern.element_bytes());
  pattern.input(rank, call, first, bytes);
  return bytes;
}

template <class T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Pattern, CombinesWhatTheRanksPutIn) {
  const Pattern pattern(TUTTI_FLOAT32, TUTTI_SUM, 3, true);
  std::vector<std::byte> combined(100 * sizeof(float));
  pattern.combined(7, 0, combined);
  const auto a = as<float>(input(pattern, 0, 7, 100));
  const auto b = as<float>(input(pattern, 1, 7, 100));
  const auto c = as<float>(input(pattern, 2, 7, 100));
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(as<float>(combined)[i], a[i] + b[i] + c[i]) << i;
}

TEST(Pattern, EveryOrderOfAFloatReductionGivesTheSameBits) {
  for (const int ranks : {2, 3, 16, 300, 1000}) {
    for (const tutti_op op : {TUTTI_SUM, TUTTI_PRODUCT}) {
      const Pattern pattern(TUTTI_FLOAT32, op, ranks, true);
      std::vector<std::byte> combined(50 * sizeof(float));
      pattern.combined(1, 0, combined);
      std::vector<float> up(50, op == TUTTI_SUM ? 0.0F : 1.0F);
      std::vector<float> down = up;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto first = as<float>(input(pattern, rank, 1, 50));
        const auto last = as<float>(input(pattern, ranks - 1 - rank, 1, 50));
        for (size_t i = 0; i < 50; ++i) {
          up[i] = op == TUTTI_SUM ? up[i] + first[i] : up[i] * first[i];
          down[i] = op == TUTTI_SUM ? down[i] + last[i] : down[i] * last[i];
        }
      }
      EXPECT_EQ(as<float>(combined), up) << ranks << " ranks, " << tutti_op_name(op);
      EXPECT_EQ(as<float>(combined), down) << ranks << " ranks, " << tutti_op_name(op);
    }
  }
}

// The decoded value of 16-bit bits, to look at partial results.
double decode(uint16_t bits, FloatFormat format) {
  const int exponent = (bits >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const double value = exponent == 0
                           ? std::ldexp(mantissa, 1 - bias - format.mantissa_bits)
                           : std::ldexp(mantissa + (1 << format.mantissa_bits), exponent - bias - format.mantissa_bits);
  return (bits >> 15) != 0 ? -value : value;
}

TEST(Pattern, PartialResultsOfSmallFloatsAreExactInTheTypeItself) {
  for (const auto& [type, format] : {std::pair{TUTTI_FLOAT16, kFloat16}, std::pair{TUTTI_BFLOAT16, kBfloat16}}) {
    for (const tutti_op op : {TUTTI_SUM, TUTTI_PRODUCT}) {
      for (const int ranks : {2, 7, 40, 300, 3000}) {
        const Pattern pattern(type, op, ranks, true);
        std::vector<double> partial(20, op == TUTTI_SUM ? 0 : 1);
        for (int rank = 0; rank < ranks; ++rank) {
          const auto bits = as<uint16_t>(input(pattern, rank, 5, partial.size()));
          for (size_t i = 0; i < partial.size(); ++i) {
            const double value = decode(bits[i], format);
            partial[i] = op == TUTTI_SUM ? partial[i] + value : partial[i] * value;
            ASSERT_EQ(decode(static_cast<uint16_t>(float_bits(partial[i], format)), format), partial[i])
                << tutti_type_name(type) << " " << tutti_op_name(op) << " rank " << rank << " of " << ranks;
          }
        }
      }
    }
  }
}

TEST(Pattern, NoProductCanLeaveTheRangeWhateverItsElements) {
  // float16 has exponents from -14 to 15: with one power of two a rank, 14 ranks may bring one.
  const Pattern pattern(TUTTI_FLOAT16, TUTTI_PRODUCT, 100, true);
  int ranks_with_powers = 0;
  for (int rank = 0; rank < 100; ++rank) {
    bool has_power = false;
    for (const uint16_t bits : as<uint16_t>(input(pattern, rank, 5, 100))) {
      const double magnitude = std::fabs(decode(bits, kFloat16));
      EXPECT_TRUE(magnitude == 0.5 || magnitude == 1 || magnitude == 2) << magnitude;
      has_power |= magnitude != 1;
    }
    ranks_with_powers += has_power ? 1 : 0;
  }
  EXPECT_EQ(ranks_with_powers, 14);
}

TEST(Pattern, DiffersByRankElementAndCall) {
  const Pattern pattern(TUTTI_INT64, TUTTI_SUM, 4, true);
  std::set<int64_t> seen;
  for (const int rank : {0, 1, 2, 3})
    for (const uint64_t call : {1U, 2U, 3U})
      for (const int64_t value : as<int64_t>(input(pattern, rank, call, 500))) seen.insert(value);
  EXPECT_EQ(seen.size(), 4U * 3U * 500U);
}

TEST(Pattern, APartIsTheSameAsTheWholesPart) {
  for (int type = TUTTI_INT8; type <= TUTTI_FLOAT64; ++type) {
    const Pattern pattern(static_cast<tutti_type>(type), TUTTI_SUM, 3, true);
    const auto whole = input(pattern, 1, 9, 5000);
    const auto part = input(pattern, 1, 9, 3000, 1777);
    EXPECT_EQ(std::memcmp(part.data(), whole.data() + 1777 * pattern.element_bytes(), part.size()), 0) << type;
  }
}

TEST(Pattern, IntegersWrapAndAverageTowardZero) {
  const Pattern sum(TUTTI_INT8, TUTTI_SUM, 5, true);
  const Pattern average(TUTTI_INT8, TUTTI_AVERAGE, 5, true);
  const Pattern least(TUTTI_UINT16, TUTTI_MIN, 5, true);
  std::vector<std::byte> sums(1000);
  std::vector<std::byte> averages(1000);
  std::vector<std::byte> leasts(2000);
  sum.combined(3, 0, sums);
  average.combined(3, 0, averages);
  least.combined(3, 0, leasts);
  std::vector<int8_t> expected(1000);
  std::vector<uint16_t> smallest(1000, 65535);
  for (int rank = 0; rank < 5; ++rank) {
    const auto bytes = as<int8_t>(input(sum, rank, 3, 1000));
    const auto words = as<uint16_t>(input(least, rank, 3, 1000));
    for (size_t i = 0; i < 1000; ++i) {
      expected[i] = static_cast<int8_t>(expected[i] + bytes[i]);
      smallest[i] = std::min(smallest[i], words[i]);
    }
  }
  EXPECT_EQ(as<int8_t>(sums), expected);
  EXPECT_EQ(as<uint16_t>(leasts), smallest);
  for (int8_t& value : expected) value = static_cast<int8_t>(value / 5);
  EXPECT_EQ(as<int8_t>(averages), expected);
}

TEST(FloatBits, AgreesWithTheMachine) {
  uint64_t state = 12345;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double value =
        std::ldexp(static_cast<double>(static_cast<int64_t>(state)), static_cast<int>(state % 300) - 220);
    EXPECT_EQ(float_bits(value, kFloat32), std::bit_cast<uint32_t>(static_cast<float>(value))) << value;
    EXPECT_EQ(float_bits(value, kFloat64), std::bit_cast<uint64_t>(value)) << value;
  }
}

TEST(FloatBits, RoundsSmallFormatsToNearestEven) {
  EXPECT_EQ(float_bits(1, kFloat16), 0x3c00U);
  EXPECT_EQ(float_bits(-2, kFloat16), 0xc000U);
  EXPECT_EQ(float_bits(65504, kFloat16), 0x7bffU);
  EXPECT_EQ(float_bits(65520, kFloat16), 0x7c00U) << "rounds to infinity";
  EXPECT_EQ(float_bits(2049, kFloat16), float_bits(2048, kFloat16)) << "tie, to even";
  EXPECT_EQ(float_bits(2051, kFloat16), float_bits(2052, kFloat16)) << "tie, to even";
  EXPECT_EQ(float_bits(std::ldexp(1, -24), kFloat16), 1U) << "the smallest subnormal";
  EXPECT_EQ(float_bits(std::ldexp(1, -14), kFloat16), 0x0400U) << "the smallest normal";
  EXPECT_EQ(float_bits(1, kBfloat16), 0x3f80U);
  EXPECT_EQ(float_bits(257, kBfloat16), float_bits(256, kBfloat16)) << "tie, to even";
  EXPECT_EQ(float_bits(-0.0, kBfloat16), 0x8000U);
}

}  // namespace
}  // namespace tutti::perf
