// and, or, xor: the bytes of all integer types alike.
#include "algo/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "algo/kernels/bitwise_kernels.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "algo/kernels/loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

struct Bytes {
  using Lane = uint8_t;
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
struct BitAnd : Bytes {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::And(a, b);
  }
};
struct BitOr : Bytes {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Or(a, b);
  }
};
struct BitXor : Bytes {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

template <class Math>
ReduceKernel of_width(size_t element_bytes) {
  switch (element_bytes) {
    case 1: return kernel<Math, 1>;
    case 2: return kernel<Math, 2>;
    case 4: return kernel<Math, 4>;
    default: return kernel<Math, 8>;
  }
}

ReduceKernel select_bitwise(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::bit_and: return of_width<BitAnd>(type_bytes(type));
    case ReduceOp::bit_or: return of_width<BitOr>(type_bytes(type));
    default: return of_width<BitXor>(type_bytes(type));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(select_bitwise);
ReduceKernel bitwise_kernel(DataType type, ReduceOp op) { return HWY_DYNAMIC_DISPATCH(select_bitwise)(type, op); }
}  // namespace tutti::internal
#endif
