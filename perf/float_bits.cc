#include "float_bits.h"

#include <algorithm>
#include <cmath>

namespace tutti::perf {

uint64_t float_bits(double value, FloatFormat format) {
  const uint64_t sign = uint64_t{std::signbit(value)} << (format.exponent_bits + format.mantissa_bits);
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  // Below the smallest exponent the numbers are as far apart as at it.
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // In units of the last place: an integer of mantissa_bits + 1 bits, or fewer when subnormal. nearbyint rounds to
  // even.
  const auto units = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent)));
  const uint64_t leading_one = uint64_t{1} << format.mantissa_bits;
  // A carry out of the mantissa is the next exponent, which the addition gives by itself.
  const uint64_t bits = units < leading_one
                            ? units
                            : (static_cast<uint64_t>(exponent + bias) << format.mantissa_bits) + (units - leading_one);
  const uint64_t infinity = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  return sign | std::min(bits, infinity);
}

}  // namespace tutti::perf
