// sum, average and product of integers. Sums and products wrap alike for signed and unsigned, so both run on unsigned
// lanes, where wrapping is defined; only the division of an average knows the sign.
#include "algo/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "algo/kernels/integer_kernels.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "algo/kernels/loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

template <class T>
struct Unsigned {
  using Lane = T;
  using Full = hn::ScalableTag<Lane>;
  using Finish = NoFinish;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const uint8_t* from) {
    return load_bytes(d, from);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, uint8_t* to, Finish) {
    store_bytes(d, v, to);
  }
};

template <class T>
struct Sum : Unsigned<T> {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Add(a, b);
  }
};

template <class T>
struct Product : Unsigned<T> {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    if constexpr (sizeof(T) > 1) {
      return hn::Mul(a, b);
    } else if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Set(d, static_cast<T>(hn::GetLane(a) * hn::GetLane(b)));
    } else {
      // No processor multiplies bytes: even and odd ones as halves of 16-bit products.
      const hn::Repartition<uint16_t, D> d16;
      const auto a16 = hn::BitCast(d16, a), b16 = hn::BitCast(d16, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, uint16_t{0xFF}));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
      return hn::BitCast(d, hn::Or(even, odd));
    }
  }
};

// Divides toward zero. Up to 32 bits a double holds both numbers, and its rounded quotient reaches the next integer
// only where that is the quotient: the whole part is exact, and the compiler has vectors for it.
template <class T>
void divide(uint8_t* values, size_t bytes, uint32_t divisor) {
  using Number = std::conditional_t<sizeof(T) < 8, double, T>;
  const auto by = static_cast<Number>(divisor);
  for (size_t at = 0; at < bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, values + at, sizeof(T));
    value = static_cast<T>(static_cast<Number>(value) / by);
    std::memcpy(values + at, &value, sizeof(T));
  }
}

// The sum; and if there is a divisor, divided piece by piece while it is in the first-level cache.
template <class T>
void sum_kernel(void* dst, const void* const* sources, int source_count, size_t element_count, uint32_t divisor) {
  using Sums = Loop<Sum<std::make_unsigned_t<T>>>;
  const size_t bytes = element_count * sizeof(T);
  if (divisor == 0) return Sums::run(dst, sources, source_count, 0, bytes, NoFinish());
  constexpr size_t kPieceBytes = 4096;
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    const size_t end = std::min(at + kPieceBytes, bytes);
    Sums::run(dst, sources, source_count, at, end, NoFinish());
    divide<T>(static_cast<uint8_t*>(dst) + at, end - at, divisor);
  }
}

template <class T>
ReduceKernel of_type(ReduceOp op) {
  return op == ReduceOp::product ? kernel<Product<std::make_unsigned_t<T>>> : sum_kernel<T>;
}

ReduceKernel select_integer(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::int8: return of_type<int8_t>(op);
    case DataType::uint8: return of_type<uint8_t>(op);
    case DataType::int16: return of_type<int16_t>(op);
    case DataType::uint16: return of_type<uint16_t>(op);
    case DataType::int32: return of_type<int32_t>(op);
    case DataType::uint32: return of_type<uint32_t>(op);
    case DataType::int64: return of_type<int64_t>(op);
    default: return of_type<uint64_t>(op);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(select_integer);
ReduceKernel integer_kernel(DataType type, ReduceOp op) { return HWY_DYNAMIC_DISPATCH(select_integer)(type, op); }
}  // namespace tutti::internal
#endif
