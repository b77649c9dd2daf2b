// Reductions element by element, written from the documentation alone, apart from the kernels: slow and plain. Runs on
// the test's thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "src/base/types.h"

namespace tutti_test {

using tutti::internal::DataType;
using tutti::internal::ReduceOp;

// The value of a float16 (5, 10) or bfloat16 (8, 7).
inline float decode(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const int exponent = bits >> fraction_bits & top, fraction = bits & ((1 << fraction_bits) - 1);
  const float sign = bits & 0x8000 ? -1.0F : 1.0F;
  if (exponent == top) return fraction != 0 ? NAN : sign * INFINITY;
  const double significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * static_cast<float>(std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - fraction_bits));
}

// The nearest of them, the even one of two that are equally near.
inline uint16_t encode(float value, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int infinity = ((1 << exponent_bits) - 1) << fraction_bits;
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | 1 << (fraction_bits - 1));
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return static_cast<uint16_t>(sign);
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity);
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
  const int bits = steps + ((exponent + bias - 1) << fraction_bits);
  return static_cast<uint16_t>(sign | std::min(bits, infinity));
}

// Type-wise access: Value is what is computed with.
template <class T>
struct Plain {
  using Bits = T;
  using Value = T;
  static Value value(Bits bits) { return bits; }
  static Bits bits(Value value) {
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(value)) return std::numeric_limits<T>::quiet_NaN();
    return value;
  }
};
template <int kExponentBits, int kFractionBits>
struct Small {
  using Bits = uint16_t;
  using Value = float;
  static Value value(Bits bits) { return decode(bits, kExponentBits, kFractionBits); }
  static Bits bits(Value value) { return encode(value, kExponentBits, kFractionBits); }
};

// Calls f.template operator()<Access>() with the type's access.
template <class F>
auto with_type(DataType type, F f) {
  switch (type) {
    case DataType::int8: return f.template operator()<Plain<int8_t>>();
    case DataType::uint8: return f.template operator()<Plain<uint8_t>>();
    case DataType::int16: return f.template operator()<Plain<int16_t>>();
    case DataType::uint16: return f.template operator()<Plain<uint16_t>>();
    case DataType::int32: return f.template operator()<Plain<int32_t>>();
    case DataType::uint32: return f.template operator()<Plain<uint32_t>>();
    case DataType::int64: return f.template operator()<Plain<int64_t>>();
    case DataType::uint64: return f.template operator()<Plain<uint64_t>>();
    case DataType::float16: return f.template operator()<Small<5, 10>>();
    case DataType::bfloat16: return f.template operator()<Small<8, 7>>();
    case DataType::float32: return f.template operator()<Plain<float>>();
    case DataType::float64: break;
  }
  return f.template operator()<Plain<double>>();
}

template <class T>
T float_min(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class T>
T combine(T a, T b, ReduceOp op) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case ReduceOp::product: return a * b;
      case ReduceOp::min: return float_min(a, b);
      case ReduceOp::max: return -float_min(-a, -b);
      default: return a + b;
    }
  } else {
    const auto wide_a = static_cast<uint64_t>(a), wide_b = static_cast<uint64_t>(b);
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::average: return static_cast<T>(wide_a + wide_b);
      case ReduceOp::product: return static_cast<T>(wide_a * wide_b);
      case ReduceOp::min: return b < a ? b : a;
      case ReduceOp::max: return a < b ? b : a;
      case ReduceOp::bit_and: return static_cast<T>(wide_a & wide_b);
      case ReduceOp::bit_or: return static_cast<T>(wide_a | wide_b);
      case ReduceOp::bit_xor: return static_cast<T>(wide_a ^ wide_b);
    }
    return 0;
  }
}

template <class T>
T divide(T value, uint32_t divisor) {
  if constexpr (std::is_floating_point_v<T>) return value / static_cast<T>(divisor);
  if constexpr (std::is_same_v<T, uint64_t>) return value / divisor;
  return static_cast<T>(static_cast<int64_t>(value) / static_cast<int64_t>(divisor));
}

using Bytes = std::vector<uint8_t>;

// The bytes of the reduction of the operands, which are of one length.
inline Bytes reduce(DataType type, ReduceOp op, const std::vector<Bytes>& operands, uint32_t divisor) {
  return with_type(type, [&]<class Access>() {
    using Bits = typename Access::Bits;
    Bytes result(operands[0].size());
    for (size_t at = 0; at < result.size(); at += sizeof(Bits)) {
      const auto value_of = [&](const Bytes& operand) {
        Bits bits;
        std::memcpy(&bits, operand.data() + at, sizeof bits);
        return Access::value(bits);
      };
      auto value = value_of(operands[0]);
      for (size_t k = 1; k < operands.size(); ++k) value = combine(value, value_of(operands[k]), op);
      if (divisor != 0) value = divide(value, divisor);
      const Bits bits = Access::bits(value);
      std::memcpy(result.data() + at, &bits, sizeof bits);
    }
    return result;
  });
}

// Elements of all kinds. Integers: any bits and the ends of the range. Floats: two of three near 1, so that sums and
// products stay finite; every third any bits, or a zero, infinity, NaN or denormal.
inline Bytes random_elements(DataType type, size_t count, std::mt19937_64& random) {
  return with_type(type, [&]<class Access>() {
    using Bits = typename Access::Bits;
    using Value = typename Access::Value;
    using Limits = std::numeric_limits<Value>;
    std::vector<Bits> elements(count);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t any = random();
      std::memcpy(&elements[i], &any, sizeof(Bits));
      const uint64_t choice = random() % 16;
      if constexpr (std::is_floating_point_v<Value>) {
        const Value special[] = {0, -Value(0), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), 1};
        if (i % 3 != 0) {
          elements[i] = Access::bits(static_cast<Value>(static_cast<double>(random() % 4096) / 1024 - 2));
        } else if (choice < 6) {
          elements[i] = Access::bits(special[choice]);
        } else if (choice < 8) {
          elements[i] = static_cast<Bits>(Access::bits(Limits::denorm_min() * static_cast<Value>(1 + any % 9)));
        }
      } else {
        const Value special[] = {0, 1, Limits::min(), Limits::max(), static_cast<Value>(Limits::max() / 2 + 1)};
        if (choice < 5) elements[i] = special[choice];
      }
    }
    Bytes bytes(count * sizeof(Bits));
    if (count != 0) std::memcpy(bytes.data(), elements.data(), bytes.size());
    return bytes;
  });
}

}  // namespace tutti_test
