// float16 to float32 and back, per instruction set: by the processor's instructions where they are part of the set,
// else by integer arithmetic on the bits. Both round to nearest even, overflow to infinity, and keep denormals whatever
// the thread's floating point mode is. A NaN stays a NaN, but which one is left to the caller.
#if defined(TUTTI_KERNELS_FLOAT16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_FLOAT16_INL_H
#undef TUTTI_KERNELS_FLOAT16_INL_H
#else
#define TUTTI_KERNELS_FLOAT16_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// D: the tag of uint16 lanes, as they are in memory.
template <class D>
using FloatsOf = hn::Rebind<float, D>;

#if (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3) && !defined(HWY_DISABLE_F16C)

template <class D>
HWY_INLINE hn::Vec<FloatsOf<D>> float_of_half(D d, hn::Vec<D> half) {
  const hn::Rebind<hwy::float16_t, D> d_half;
  (void)d;
  return hn::PromoteTo(FloatsOf<D>(), hn::BitCast(d_half, half));
}

template <class D>
HWY_INLINE hn::Vec<D> half_of_float(D d, hn::Vec<FloatsOf<D>> v) {
  const hn::Rebind<hwy::float16_t, D> d_half;
  return hn::BitCast(d, hn::DemoteTo(d_half, v));
}

#else

// A float16 is sign, 5 bits of exponent (bias 15), 10 of fraction; a float32 has 8 (bias 127) and 23.
template <class D>
HWY_INLINE hn::Vec<FloatsOf<D>> float_of_half(D, hn::Vec<D> half) {
  const FloatsOf<D> df;
  const hn::RebindToSigned<decltype(df)> d32;
  const auto set = [](int32_t value) HWY_ATTR { return hn::Set(hn::RebindToSigned<FloatsOf<D>>(), value); };
  const auto bits = hn::BitCast(d32, hn::PromoteTo(hn::RebindToUnsigned<decltype(d32)>(), half));
  const auto magnitude = hn::And(bits, set(0x7FFF));
  const auto sign = hn::ShiftLeft<16>(hn::Sub(bits, magnitude));

  const auto rebias = set((127 - 15) << 23);
  const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
  const auto special = hn::Add(normal, rebias);  // infinity and NaN: exponent 31 becomes 255
  const auto denormal = hn::BitCast(d32, hn::Mul(hn::ConvertTo(df, magnitude), hn::Set(df, 0x1p-24F)));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, set(0x0400)), denormal, normal);
  const auto wide = hn::IfThenElse(hn::Lt(magnitude, set(0x7C00)), finite, special);
  return hn::BitCast(df, hn::Or(wide, sign));
}

template <class D>
HWY_INLINE hn::Vec<D> half_of_float(D d, hn::Vec<FloatsOf<D>> v) {
  const FloatsOf<D> df;
  const hn::RebindToSigned<decltype(df)> d32;
  const auto set = [](int32_t value) HWY_ATTR { return hn::Set(hn::RebindToSigned<FloatsOf<D>>(), value); };
  const auto bits = hn::BitCast(d32, v);
  const auto magnitude = hn::And(bits, set(0x7FFFFFFF));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), set(0x8000));

  // Half of the last place that stays, less one when that place is even: a carry then is a rounding up.
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), set(1));
  const auto rounded = hn::Add(magnitude, hn::Add(odd, set(0xFFF)));
  const auto normal = hn::Sub(hn::ShiftRight<13>(rounded), set((127 - 15) << 10));
  // The last place of 0.5 is that of the denormals: the addition rounds, and leaves their bits below those of 0.5.
  const auto shifted = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5F));
  const auto denormal = hn::Sub(hn::BitCast(d32, shifted), set(0x3F000000));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, set((127 - 14) << 23)), denormal, normal);
  const auto limited = hn::IfThenElse(hn::Lt(magnitude, set((127 + 16) << 23)), finite, set(0x7C00));
  const auto all = hn::IfThenElse(hn::Gt(magnitude, set(0x7F800000)), set(0x7E00), limited);
  // Narrowed as unsigned, from below 2^16: nothing is cut, and the sign is put in after it.
  const auto narrow = hn::DemoteTo(d, all);
  return hn::Or(narrow, hn::ShiftLeft<8>(hn::DemoteTo(d, hn::ShiftRight<8>(sign))));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#endif
