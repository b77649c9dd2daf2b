// float16 and bfloat16: sums, averages and products in float32, rounded once at the end of the pass; min and max on the
// 16 bits themselves, where nothing is rounded.
#include "algo/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "algo/kernels/small_float_kernels.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <bit>
#include <limits>

#include "algo/kernels/float16_inl.h"
#include "algo/kernels/loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

// One NaN for all, as in float_kernels.cc.
template <class D>
HWY_INLINE hn::Vec<D> with_one_nan(D d, hn::Vec<D> v) {
  return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), v);
}

// What the result is divided by; 0: it is not.
struct Divisor {
  float by;
};
template <class D>
HWY_INLINE hn::Vec<D> finished(D d, hn::Vec<D> v, const Divisor& finish) {
  if (finish.by != 0) v = hn::Div(v, hn::Set(d, finish.by));
  return with_one_nan(d, v);
}

struct Add {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Multiply {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Mul(a, b);
  }
};

template <class Operator>
struct Float16 {
  using Lane = uint16_t;
  using Full = hn::Rebind<Lane, hn::ScalableTag<float>>;
  using Finish = Divisor;

  template <class D>
  static HWY_INLINE hn::Vec<FloatsOf<D>> load(D d, const uint8_t* from) {
    return float_of_half(d, load_bytes(d, from));
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return Operator::apply(a, b);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<FloatsOf<D>> v, uint8_t* to, const Finish& finish) {
    store_bytes(d, half_of_float(d, finished(FloatsOf<D>(), v, finish)), to);
  }
};

// A bfloat16 is the upper half of a float32. Lanes stay where they are, and nothing is shuffled: of each pair, the one
// at the higher address is a float32 once the other is cleared, and that one once it is shifted up.
static_assert(std::endian::native == std::endian::little);
template <class Operator>
struct BFloat16 {
  using Lane = uint16_t;
  using Full = hn::ScalableTag<Lane>;
  using Finish = Divisor;

  template <class D>
  static constexpr size_t kPairs = hn::MaxLanes(D()) > 1 ? hn::MaxLanes(D()) / 2 : 1;
  template <class D>
  using Bits = hn::CappedTag<uint32_t, kPairs<D>>;
  template <class D>
  using Floats = hn::RebindToFloat<Bits<D>>;
  template <class D>
  struct Accumulator {
    hn::Vec<Floats<D>> low, high;
  };

  template <class D>
  static HWY_INLINE Accumulator<D> load(D d, const uint8_t* from) {
    const Floats<D> floats;
    const auto pairs = load_pairs(d, from);
    const auto high = hn::And(pairs, hn::Set(Bits<D>(), 0xFFFF0000U));
    return {hn::BitCast(floats, hn::ShiftLeft<16>(pairs)), hn::BitCast(floats, high)};
  }
  template <class D>
  static HWY_INLINE Accumulator<D> combine(D, Accumulator<D> a, Accumulator<D> b) {
    return {Operator::apply(a.low, b.low), Operator::apply(a.high, b.high)};
  }
  template <class D>
  static HWY_INLINE void store(D d, Accumulator<D> acc, uint8_t* to, const Finish& finish) {
    const auto low = hn::ShiftRight<16>(rounded<D>(acc.low, finish));
    const auto high = hn::And(rounded<D>(acc.high, finish), hn::Set(Bits<D>(), 0xFFFF0000U));
    store_pairs(d, hn::Or(low, high), to);
  }

 private:
  // A single lane is the lower one of a pair whose other is 0.
  template <class D>
  static HWY_INLINE hn::Vec<Bits<D>> load_pairs(D d, const uint8_t* from) {
    const auto v = load_bytes(d, from);
    if constexpr (hn::MaxLanes(D()) > 1) {
      return hn::BitCast(Bits<D>(), v);
    } else {
      return hn::Set(Bits<D>(), uint32_t{hn::GetLane(v)});
    }
  }
  template <class D>
  static HWY_INLINE void store_pairs(D d, hn::Vec<Bits<D>> pairs, uint8_t* to) {
    if constexpr (hn::MaxLanes(D()) > 1) {
      store_bytes(d, hn::BitCast(d, pairs), to);
    } else {
      store_bytes(d, hn::Set(d, static_cast<Lane>(hn::GetLane(pairs))), to);
    }
  }
  // The float32's bits with the upper half rounded to nearest even: half of its last place, less one when that place is
  // even, is added. An overflow carries into infinity; the NaN has nothing below to carry.
  template <class D>
  static HWY_INLINE hn::Vec<Bits<D>> rounded(hn::Vec<Floats<D>> v, const Finish& finish) {
    const Bits<D> d;
    const auto bits = hn::BitCast(d, finished(Floats<D>(), v, finish));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1U));
    return hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFFU)));
  }
};

// Both types order as their bits do, if those of negative numbers are flipped below the sign. NaNs then lie at both
// ends; those at the wrong one are moved, so that a NaN wins.
template <int16_t kInfinity, int16_t kNan, bool kMin>
struct BitOrder {
  using Lane = int16_t;
  using Full = hn::ScalableTag<Lane>;
  using Finish = NoFinish;
  static constexpr Lane kMinusInfinity = static_cast<Lane>(-kInfinity - 1);  // flipped

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const uint8_t* from) {
    const auto key = flipped(d, load_bytes(d, from));
    const auto winner = hn::Set(d, kMin ? hwy::LowestValue<Lane>() : hwy::HighestValue<Lane>());
    const auto is_lost_nan = kMin ? hn::Gt(key, hn::Set(d, kInfinity)) : hn::Lt(key, hn::Set(d, kMinusInfinity));
    return hn::IfThenElse(is_lost_nan, winner, key);
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return kMin ? hn::Min(a, b) : hn::Max(a, b);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> key, uint8_t* to, Finish) {
    const auto is_nan = kMin ? hn::Lt(key, hn::Set(d, kMinusInfinity)) : hn::Gt(key, hn::Set(d, kInfinity));
    store_bytes(d, hn::IfThenElse(is_nan, hn::Set(d, kNan), flipped(d, key)), to);
  }

 private:
  template <class D>
  static HWY_INLINE hn::Vec<D> flipped(D d, hn::Vec<D> v) {
    return hn::Xor(v, hn::And(hn::ShiftRight<15>(v), hn::Set(d, Lane{0x7FFF})));
  }
};
template <bool kMin>
using Float16Order = BitOrder<0x7C00, 0x7E00, kMin>;
template <bool kMin>
using BFloat16Order = BitOrder<0x7F80, 0x7FC0, kMin>;

template <class Math>
void finishing_kernel(void* dst, const void* const* sources, int source_count, size_t element_count, uint32_t divisor) {
  Loop<Math>::run(dst, sources, source_count, 0, element_count * sizeof(uint16_t), {static_cast<float>(divisor)});
}
template <class Math>
void plain_kernel(void* dst, const void* const* sources, int source_count, size_t element_count, uint32_t) {
  finishing_kernel<Math>(dst, sources, source_count, element_count, 0);
}

template <template <class> class Type, template <bool> class TypeOrder>
ReduceKernel of_type(ReduceOp op) {
  switch (op) {
    case ReduceOp::product: return plain_kernel<Type<Multiply>>;
    case ReduceOp::min: return kernel<TypeOrder<true>>;
    case ReduceOp::max: return kernel<TypeOrder<false>>;
    default: return finishing_kernel<Type<Add>>;
  }
}

ReduceKernel select_small_float(DataType type, ReduceOp op) {
  return type == DataType::float16 ? of_type<Float16, Float16Order>(op) : of_type<BFloat16, BFloat16Order>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(select_small_float);
ReduceKernel small_float_kernel(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(select_small_float)(type, op);
}
}  // namespace tutti::internal
#endif
