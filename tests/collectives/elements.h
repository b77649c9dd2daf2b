// Elements of every type for tests, with arithmetic of its own: slow, plain, and written apart from the library's.
#pragma once

#include <tutti/tutti.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tutti_test {

inline bool is_float_type(tutti_type type) { return type >= TUTTI_FLOAT16; }
inline bool is_bitwise_op(tutti_op op) { return op >= TUTTI_BIT_AND; }

// Rounds to the nearest value with `fraction_bits` and `exponent_bits`, ties to even, and gives its bits.
inline uint16_t to_small_float(double value, int exponent_bits, int fraction_bits) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double magnitude = std::fabs(value);
  const auto infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | 1 << (fraction_bits - 1));
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  const double scaled = std::ldexp(magnitude, fraction_bits - exponent);  // an integer where it is exact
  double rounded = std::nearbyint(scaled);                                // ties to even is the default mode
  const auto bits = static_cast<int64_t>(rounded) + (static_cast<int64_t>(exponent + bias - 1) << fraction_bits);
  return static_cast<uint16_t>(sign | (bits >= infinity ? infinity : bits));
}

inline double from_small_float(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

// Writes a float value (exactly representable, or rounded to nearest) as an element.
inline void put_float(void* at, tutti_type type, double value) {
  if (type == TUTTI_FLOAT64) std::memcpy(at, &value, 8);
  const auto single = static_cast<float>(value);
  if (type == TUTTI_FLOAT32) std::memcpy(at, &single, 4);
  uint16_t half = 0;
  if (type == TUTTI_FLOAT16) half = to_small_float(value, 5, 10);
  if (type == TUTTI_BFLOAT16) half = to_small_float(value, 8, 7);
  if (tutti_type_bytes(type) == 2) std::memcpy(at, &half, 2);
}

inline bool is_signed_type(tutti_type type) { return type % 2 == 0; }

// Cuts to the width of the type, and widens again as the type does.
inline int64_t wrap(uint64_t value, tutti_type type) {
  const int bits = static_cast<int>(tutti_type_bytes(type)) * 8;
  if (bits == 64) return static_cast<int64_t>(value);
  const uint64_t cut = value & ((uint64_t{1} << bits) - 1);
  const bool negative = is_signed_type(type) && (cut >> (bits - 1));
  return static_cast<int64_t>(negative ? cut | ~((uint64_t{1} << bits) - 1) : cut);
}

inline int64_t combine_int(int64_t a, int64_t b, tutti_op op, tutti_type type) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool less = is_signed_type(type) ? b < a : ub < ua;
  switch (op) {
    case TUTTI_SUM:
    case TUTTI_AVERAGE: return wrap(ua + ub, type);
    case TUTTI_PRODUCT: return wrap(ua * ub, type);
    case TUTTI_MIN: return less ? b : a;
    case TUTTI_MAX: return less ? a : b;
    case TUTTI_BIT_AND: return wrap(ua & ub, type);
    case TUTTI_BIT_OR: return wrap(ua | ub, type);
    case TUTTI_BIT_XOR: return wrap(ua ^ ub, type);
  }
  return 0;
}

inline double combine_float(double a, double b, tutti_op op) {
  switch (op) {
    case TUTTI_PRODUCT: return a * b;
    case TUTTI_MIN: return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
    case TUTTI_MAX: return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
    default: return a + b;
  }
}

inline uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// What rank `rank` puts in for element `i`: any bits for integers; for floats small numbers, such that sums, products
// and extremes over few ranks are exact in every order and every type.
inline int64_t int_value(int rank, uint64_t i, tutti_type type) {
  return wrap(mix(i * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) + 1), type);
}
inline double float_value(int rank, uint64_t i, tutti_op op) {
  const uint64_t random = mix(i * 31 + static_cast<uint64_t>(rank) + 7);
  return op == TUTTI_PRODUCT ? static_cast<double>(1 + random % 2) : static_cast<double>(random % 8) - 3;
}

inline void put_value(void* at, tutti_type type, tutti_op op, int rank, uint64_t i) {
  if (is_float_type(type)) return put_float(at, type, float_value(rank, i, op));
  const int64_t value = int_value(rank, i, type);
  std::memcpy(at, &value, tutti_type_bytes(type));
}

// The reduction of element `i` over `size` ranks.
inline void put_reduced(void* at, tutti_type type, tutti_op op, int size, uint64_t i) {
  if (is_float_type(type)) {
    double value = float_value(0, i, op);
    for (int r = 1; r < size; ++r) value = combine_float(value, float_value(r, i, op), op);
    if (op == TUTTI_AVERAGE)
      value = type == TUTTI_FLOAT64 ? value / size : static_cast<float>(value) / static_cast<float>(size);
    return put_float(at, type, value);
  }
  int64_t value = int_value(0, i, type);
  for (int r = 1; r < size; ++r) value = combine_int(value, int_value(r, i, type), op, type);
  if (op == TUTTI_AVERAGE)
    value = is_signed_type(type) ? value / size
                                 : static_cast<int64_t>(static_cast<uint64_t>(value) / static_cast<uint64_t>(size));
  std::memcpy(at, &value, tutti_type_bytes(type));
}

}  // namespace tutti_test
