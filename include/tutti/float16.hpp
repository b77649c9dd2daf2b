// tutti::float16 and tutti::bfloat16: 16 bits each that convert to and from float. They are for storage and transfer;
// compute in float. Conversion from float rounds to the nearest, ties to even; overflow gives infinity; NaN stays NaN.
#ifndef TUTTI_FLOAT16_HPP
#define TUTTI_FLOAT16_HPP

#include <bit>
#include <cstdint>

namespace tutti {

// IEEE binary16: 5 bits of exponent, 10 of fraction.
// NOLINTNEXTLINE(readability-identifier-naming): named like the built-in types it stands beside.
class float16 {
 public:
  float16() = default;
  explicit constexpr float16(float value) : bits_(bits_of(value)) {}
  static constexpr float16 from_bits(uint16_t bits) {
    float16 half;
    half.bits_ = bits;
    return half;
  }

  constexpr operator float() const;
  constexpr uint16_t bits() const { return bits_; }

 private:
  static constexpr uint16_t bits_of(float value);

  uint16_t bits_ = 0;
};

// The upper half of a float32: 8 bits of exponent, 7 of fraction.
// NOLINTNEXTLINE(readability-identifier-naming): as float16.
class bfloat16 {
 public:
  bfloat16() = default;
  explicit constexpr bfloat16(float value) : bits_(bits_of(value)) {}
  static constexpr bfloat16 from_bits(uint16_t bits) {
    bfloat16 half;
    half.bits_ = bits;
    return half;
  }

  constexpr operator float() const { return std::bit_cast<float>(uint32_t{bits_} << 16); }
  constexpr uint16_t bits() const { return bits_; }

 private:
  static constexpr uint16_t bits_of(float value);

  uint16_t bits_ = 0;
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);

constexpr float16::operator float() const {
  const uint32_t magnitude = bits_ & 0x7FFFU, sign = uint32_t{bits_} >> 15 << 31;
  if (magnitude < 0x0400) {  // 0 and denormals: multiples of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const uint32_t exponent_shift = magnitude < 0x7C00 ? 127 - 15 : 255 - 31;
  return std::bit_cast<float>(sign | ((magnitude << 13) + (exponent_shift << 23)));
}

constexpr uint16_t float16::bits_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFU, sign = bits >> 16 & 0x8000U;
  if (magnitude > 0x7F800000U) return static_cast<uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x47800000U) return static_cast<uint16_t>(sign | 0x7C00U);  // 2^16 and above
  if (magnitude < 0x38800000U) {
    // Below 2^-14: beside 0.5 the last place is that of a denormal, so that the addition rounds.
    const auto shifted = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F);
    return static_cast<uint16_t>(sign | (shifted - 0x3F000000U));
  }
  // Half of the last place that stays, less one where that place is even; a carry may reach infinity.
  const uint32_t rounded = magnitude + 0xFFFU + (magnitude >> 13 & 1U);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - ((127U - 15U) << 10)));
}

constexpr uint16_t bfloat16::bits_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>(bits >> 16 | 0x0040U);
  return static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace tutti

#endif
