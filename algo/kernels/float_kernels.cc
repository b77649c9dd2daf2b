// float32 and float64: sum, average, product, min, max.
//
// Which NaN an addition gives depends on the order in which the compiler hands operands to the processor; and each
// processor has its own for inf - inf. Every NaN is therefore replaced by one and the same when it is stored.
#include "algo/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "algo/kernels/float_kernels.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <limits>

#include "algo/kernels/loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE void store_float(D d, hn::Vec<D> v, uint8_t* to) {
  const auto quiet_nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  store_bytes(d, hn::IfThenElse(hn::IsNaN(v), quiet_nan, v), to);
}

// What the result is divided by; 0: it is not.
template <class T>
struct Divisor {
  T by;
};

template <class T>
struct FloatSum {
  using Lane = T;
  using Full = hn::ScalableTag<Lane>;
  using Finish = Divisor<T>;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const uint8_t* from) {
    return load_bytes(d, from);
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Add(a, b);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, uint8_t* to, const Finish& finish) {
    if (finish.by != 0) v = hn::Div(v, hn::Set(d, finish.by));
    store_float(d, v, to);
  }
};

template <class T>
struct FloatProduct {
  using Lane = T;
  using Full = hn::ScalableTag<Lane>;
  using Finish = NoFinish;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const uint8_t* from) {
    return load_bytes(d, from);
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Mul(a, b);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, uint8_t* to, Finish) {
    store_float(d, v, to);
  }
};

// The maximum is minus the minimum of the negated operands.
template <class T, bool kMin>
struct FloatOrder {
  using Lane = T;
  using Full = hn::ScalableTag<Lane>;
  using Finish = NoFinish;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const uint8_t* from) {
    const auto v = load_bytes(d, from);
    return kMin ? v : hn::Neg(v);
  }
  // Of equal ones, "or" leaves them as they are, and makes -0 of +0 and -0; of a NaN and anything it makes a NaN.
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::IfThenElse(hn::Lt(a, b), a, hn::IfThenElse(hn::Lt(b, a), b, hn::Or(a, b)));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, uint8_t* to, Finish) {
    store_float(d, kMin ? v : hn::Neg(v), to);
  }
};

template <class T>
void float_sum_kernel(void* dst, const void* const* sources, int source_count, size_t element_count, uint32_t divisor) {
  Loop<FloatSum<T>>::run(dst, sources, source_count, 0, element_count * sizeof(T), {static_cast<T>(divisor)});
}

template <class T>
ReduceKernel of_type(ReduceOp op) {
  switch (op) {
    case ReduceOp::product: return kernel<FloatProduct<T>>;
    case ReduceOp::min: return kernel<FloatOrder<T, true>>;
    case ReduceOp::max: return kernel<FloatOrder<T, false>>;
    default: return float_sum_kernel<T>;
  }
}

ReduceKernel select_float(DataType type, ReduceOp op) {
  return type == DataType::float32 ? of_type<float>(op) : of_type<double>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(select_float);
ReduceKernel float_kernel(DataType type, ReduceOp op) { return HWY_DYNAMIC_DISPATCH(select_float)(type, op); }
}  // namespace tutti::internal
#endif
