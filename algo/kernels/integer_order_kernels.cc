// min and max of integers, each type comparing as it does.
#include "algo/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "algo/kernels/integer_order_kernels.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "algo/kernels/loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

template <class T, bool kMin>
struct Order {
  using Lane = T;
  using Full = hn::ScalableTag<Lane>;
  using Finish = NoFinish;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const uint8_t* from) {
    return load_bytes(d, from);
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return kMin ? hn::Min(a, b) : hn::Max(a, b);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, uint8_t* to, Finish) {
    store_bytes(d, v, to);
  }
};

template <class T>
ReduceKernel of_type(ReduceOp op) {
  return op == ReduceOp::min ? kernel<Order<T, true>> : kernel<Order<T, false>>;
}

ReduceKernel select_integer_order(DataType type, ReduceOp op) {
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
HWY_EXPORT(select_integer_order);
ReduceKernel integer_order_kernel(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(select_integer_order)(type, op);
}
}  // namespace tutti::internal
#endif
