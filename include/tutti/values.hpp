// The values of <tutti/tutti.hpp>: operators, status codes, the error that is thrown, options, element types, and what
// counts as memory.
#ifndef TUTTI_VALUES_HPP
#define TUTTI_VALUES_HPP

#include <tutti/tutti.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <tutti/float16.hpp>
#include <type_traits>
#include <vector>

namespace tutti {

// Reduction operators. The bitwise ones exist for integer types only.
enum class Op : int {
  sum = TUTTI_SUM,
  product = TUTTI_PRODUCT,
  min = TUTTI_MIN,
  max = TUTTI_MAX,
  average = TUTTI_AVERAGE,
  bit_and = TUTTI_BIT_AND,
  bit_or = TUTTI_BIT_OR,
  bit_xor = TUTTI_BIT_XOR,
};

// What a call came to; tutti.h says for each what the caller can do.
enum class Status : int {
  ok = TUTTI_OK,
  invalid_argument = TUTTI_INVALID_ARGUMENT,
  unsupported = TUTTI_UNSUPPORTED,
  out_of_resources = TUTTI_OUT_OF_RESOURCES,
  peer_failed = TUTTI_PEER_FAILED,
  timeout = TUTTI_TIMEOUT,
  aborted = TUTTI_ABORTED,
  mismatch = TUTTI_MISMATCH,
  internal = TUTTI_INTERNAL,
};

// Thrown by every function here that does not succeed. what() names the object, the value found and the value allowed.
class Error : public std::runtime_error {
 public:
  Error(Status code, const std::string& message, int rank = -1)
      : std::runtime_error(message), code_(code), rank_(rank) {}

  Status code() const noexcept { return code_; }
  // Of peer_failed: the world rank that died or left, or -1 if unknown.
  int rank() const noexcept { return rank_; }

 private:
  Status code_;
  int rank_;
};

// Of one operation.
struct Options {
  // Deadline from the operation's start; 0: the group's; microseconds::max(): none.
  std::chrono::microseconds timeout{0};
};

// How to join; what is left as it is comes from the environment, as tutti_init_options says.
struct InitOptions {
  int rank = -1;
  int size = 0;
  std::string store;                  // "host:port", "[v6]:port", "file:/path", "memory:name"
  std::vector<std::string> settings;  // "TUTTI_NAME=value", each goes before the environment
};

// ---- Element types --------------------------------------------------------------------------------------------------

// TypeOf<T>::value is the tutti_type of T: integers of 8 to 64 bits by size and sign, char and std::byte as uint8,
// float, double, float16, bfloat16. bool is none: its sums would be no bools.
template <class T>
struct TypeOf {};

namespace detail {
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                  !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

consteval tutti_type integer_type(std::size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1: return is_signed ? TUTTI_INT8 : TUTTI_UINT8;
    case 2: return is_signed ? TUTTI_INT16 : TUTTI_UINT16;
    case 4: return is_signed ? TUTTI_INT32 : TUTTI_UINT32;
    default: return is_signed ? TUTTI_INT64 : TUTTI_UINT64;
  }
}

template <tutti_type kType>
using Constant = std::integral_constant<tutti_type, kType>;
}  // namespace detail

template <class T>
requires(detail::Integer<T> && sizeof(T) <= 8) struct TypeOf<T>
    : detail::Constant<detail::integer_type(sizeof(T), std::is_signed_v<T>)> {
};
template <>
struct TypeOf<char> : detail::Constant<TUTTI_UINT8> {};
template <>
struct TypeOf<std::byte> : detail::Constant<TUTTI_UINT8> {};
template <>
struct TypeOf<float16> : detail::Constant<TUTTI_FLOAT16> {};
template <>
struct TypeOf<bfloat16> : detail::Constant<TUTTI_BFLOAT16> {};
template <>
struct TypeOf<float> : detail::Constant<TUTTI_FLOAT32> {};
template <>
struct TypeOf<double> : detail::Constant<TUTTI_FLOAT64> {};

template <class T>
concept Element = requires {
  TypeOf<std::remove_const_t<T>>::value;
};

// ---- Memory ---------------------------------------------------------------------------------------------------------

// Elements one after the other: std::span, std::vector, std::array, tutti::Buffer and the like. An asynchronous
// operation takes no temporary that owns its elements, for they would be gone before it is done.
template <class R>
concept Memory = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <class R>
concept LastingMemory = Memory<R> && std::ranges::borrowed_range<R>;

template <Memory R>
using ElementOf = std::ranges::range_value_t<R>;

// Memory to write to.
template <class R>
concept Output = LastingMemory<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

// Several pieces of memory: a vector of spans, a vector of vectors and the like.
template <class R>
concept MemoryList =
    std::ranges::input_range<R> && std::ranges::sized_range<R> && LastingMemory<std::ranges::range_reference_t<R>>;
template <class R>
concept OutputList = MemoryList<R> && Output<std::ranges::range_reference_t<R>>;

template <MemoryList R>
using ElementOfList = ElementOf<std::ranges::range_reference_t<R>>;

}  // namespace tutti

#endif
