// The bits of a floating point type for a value given as double: what a result must look like, computed without the
// library that is measured. Round to nearest even, from first principles, for all four types alike.
#pragma once

#include <cstdint>

namespace tutti::perf {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;  // without the leading one
};

inline constexpr FloatFormat kFloat16 = {5, 10};
inline constexpr FloatFormat kBfloat16 = {8, 7};
inline constexpr FloatFormat kFloat32 = {8, 23};
inline constexpr FloatFormat kFloat64 = {11, 52};

// `value` is finite.
uint64_t float_bits(double value, FloatFormat format);

}  // namespace tutti::perf
