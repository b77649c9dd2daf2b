#include "pattern.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "float_bits.h"

namespace tutti::perf {
namespace {

// So many elements are made at a time: small enough for the first cache, long enough for the loops to be vectors.
constexpr size_t kBlock = 1024;

// splitmix64's output function: every input bit reaches every output bit.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

FloatFormat format_of(tutti_type type) {
  switch (type) {
    case TUTTI_FLOAT16: return kFloat16;
    case TUTTI_BFLOAT16: return kBfloat16;
    case TUTTI_FLOAT32: return kFloat32;
    default: return kFloat64;
  }
}

// The low `bytes` bytes of x as a number: sign extended where Wide has a sign.
template <class Wide>
Wide narrow(Wide x, size_t bytes) {
  const auto unused_bits = static_cast<unsigned>(64 - 8 * bytes);
  return static_cast<Wide>(static_cast<Wide>(static_cast<uint64_t>(x) << unused_bits) >> unused_bits);
}

template <class Wide>
Wide combine(tutti_op op, Wide a, Wide b) {
  if (op == TUTTI_MIN) return std::min(a, b);
  if (op == TUTTI_MAX) return std::max(a, b);
  if constexpr (std::is_floating_point_v<Wide>) {
    return op == TUTTI_PRODUCT ? a * b : a + b;
  } else {
    // Unsigned, where wrapping is defined.
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    switch (op) {
      case TUTTI_PRODUCT: return static_cast<Wide>(x * y);
      case TUTTI_BIT_AND: return static_cast<Wide>(x & y);
      case TUTTI_BIT_OR: return static_cast<Wide>(x | y);
      case TUTTI_BIT_XOR: return static_cast<Wide>(x ^ y);
      default: return static_cast<Wide>(x + y);
    }
  }
}

// A switch outside the loop for each operator, so that the loops are vectors.
template <class Wide>
void combine_all(tutti_op op, std::span<Wide> into, std::span<const Wide> from) {
  const auto loop = [&](auto constant) {
    for (size_t i = 0; i < into.size(); ++i) into[i] = combine<Wide>(constant, into[i], from[i]);
  };
  switch (op) {
    case TUTTI_SUM: return loop(std::integral_constant<tutti_op, TUTTI_SUM>());
    case TUTTI_PRODUCT: return loop(std::integral_constant<tutti_op, TUTTI_PRODUCT>());
    case TUTTI_MIN: return loop(std::integral_constant<tutti_op, TUTTI_MIN>());
    case TUTTI_MAX: return loop(std::integral_constant<tutti_op, TUTTI_MAX>());
    case TUTTI_AVERAGE: return loop(std::integral_constant<tutti_op, TUTTI_SUM>());
    case TUTTI_BIT_AND: return loop(std::integral_constant<tutti_op, TUTTI_BIT_AND>());
    case TUTTI_BIT_OR: return loop(std::integral_constant<tutti_op, TUTTI_BIT_OR>());
    case TUTTI_BIT_XOR: return loop(std::integral_constant<tutti_op, TUTTI_BIT_XOR>());
  }
}

// What the element of this value looks like. The machine's own conversions serve where it has them.
uint64_t bits_of(double value, tutti_type type) {
  if (type == TUTTI_FLOAT32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == TUTTI_FLOAT64) return std::bit_cast<uint64_t>(value);
  return float_bits(value, format_of(type));
}

template <class Wide>
void encode(tutti_type type, size_t element_bytes, std::span<const Wide> values, std::byte* out) {
  for (const Wide value : values) {
    uint64_t bits;
    if constexpr (std::is_floating_point_v<Wide>) {
      bits = bits_of(value, type);
    } else {
      bits = static_cast<uint64_t>(value);
    }
    // The low bytes come first here; the machine is little-endian, as everything that tutti runs on.
    std::memcpy(out, &bits, element_bytes);
    out += element_bytes;
  }
}

}  // namespace

Pattern::Pattern(tutti_type type, tutti_op op, int ranks, bool reduces)
    : type_(type),
      op_(op),
      ranks_(ranks),
      element_bytes_(tutti_type_bytes(type)),
      is_real_(reduces && type >= TUTTI_FLOAT16),
      is_signed_(type == TUTTI_INT8 || type == TUTTI_INT16 || type == TUTTI_INT32 || type == TUTTI_INT64),
      limit_(0),
      spread_(0) {
  const FloatFormat format = format_of(type);
  if (op == TUTTI_PRODUCT) {
    // Exponents -1, 0 and 1 of so many ranks stay between the smallest normal number and the largest.
    limit_ = 1;
    spread_ = std::min(ranks, (1 << (format.exponent_bits - 1)) - 2);
  } else {
    // Integers up to this are exact in the type.
    const int64_t exact = int64_t{1} << (format.mantissa_bits + 1);
    spread_ = static_cast<int>(std::min<int64_t>(ranks, exact));
    limit_ = op == TUTTI_MIN || op == TUTTI_MAX ? exact : exact / spread_;
  }
}

template <class Wide>
void Pattern::values(int rank, uint64_t call, size_t first, std::span<Wide> out) const {
  const uint64_t seed = mix(mix(call * 0x9e3779b97f4a7c15U + 1) + static_cast<uint64_t>(rank));
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t random = mix(seed + (first + i) * 0x9e3779b97f4a7c15U);
    if constexpr (!std::is_floating_point_v<Wide>) {
      out[i] = narrow(static_cast<Wide>(random), element_bytes_);
    } else {
      const auto span = static_cast<uint64_t>(2 * limit_ + 1);
      const int64_t integer = rank < spread_ ? static_cast<int64_t>((random >> 8) % span) - limit_ : 0;
      const double sign = (random & 1) != 0 ? -1 : 1;
      out[i] = op_ == TUTTI_PRODUCT ? std::ldexp(sign, static_cast<int>(integer)) : static_cast<double>(integer);
    }
  }
}

template <class Wide>
void Pattern::write(int first_rank, int rank_count, uint64_t call, size_t first, std::span<std::byte> out) const {
  std::array<Wide, kBlock> total;
  std::array<Wide, kBlock> one;
  const size_t count = out.size() / element_bytes_;
  for (size_t done = 0; done < count; done += kBlock) {
    const std::span<Wide> into(total.data(), std::min(kBlock, count - done));
    values<Wide>(first_rank, call, first + done, into);
    for (int rank = first_rank + 1; rank < first_rank + rank_count; ++rank) {
      const std::span<Wide> from(one.data(), into.size());
      values<Wide>(rank, call, first + done, from);
      combine_all<Wide>(op_, into, from);
    }
    if (op_ == TUTTI_AVERAGE && rank_count > 1) {
      for (Wide& value : into) {
        if constexpr (!std::is_floating_point_v<Wide>) value = narrow(value, element_bytes_);
        value /= static_cast<Wide>(ranks_);
      }
    }
    encode<Wide>(type_, element_bytes_, into, out.data() + done * element_bytes_);
  }
}

void Pattern::dispatch(int first_rank, int rank_count, uint64_t call, size_t first, std::span<std::byte> out) const {
  if (is_real_) return write<double>(first_rank, rank_count, call, first, out);
  if (is_signed_) return write<int64_t>(first_rank, rank_count, call, first, out);
  write<uint64_t>(first_rank, rank_count, call, first, out);
}

void Pattern::input(int rank, uint64_t call, size_t first, std::span<std::byte> out) const {
  dispatch(rank, 1, call, first, out);
}

void Pattern::combined(uint64_t call, size_t first, std::span<std::byte> out) const {
  dispatch(0, ranks_, call, first, out);
}

}  // namespace tutti::perf
