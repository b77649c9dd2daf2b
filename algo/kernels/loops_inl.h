// How every kernel walks over memory; compiled once per instruction set. The arithmetic comes as a Math:
//   Lane                     an element in memory
//   Full                     Highway's tag of a vector of Lanes
//   load(d, bytes)           an accumulator for the Lanes(d) elements there, unaligned
//   combine(d, acc, acc)     the operator, lane by lane
//   store(d, acc, bytes, f)  rounds, finishes as `f` (a Math::Finish) says, and writes
//
// Invariant: an element's value depends on its operands alone, not on its position: whatever the count, all elements go
// through these same three functions. The last vector overlaps the one before, so that no element is left for a scalar
// rest; since dst may be a source, everything that overlaps is computed before it is stored over.
#if defined(TUTTI_KERNELS_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_LOOPS_INL_H
#undef TUTTI_KERNELS_LOOPS_INL_H
#else
#define TUTTI_KERNELS_LOOPS_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Reads and writes of vectors at any address. By unsigned lanes, and one lane by memcpy: what Highway and the compiler
// have for few floats and for one element claims that it is aligned.
template <class D>
HWY_INLINE hn::Vec<D> load_bytes(D d, const uint8_t* from) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    hn::TFromD<D> lane;
    std::memcpy(&lane, from, sizeof lane);
    return hn::Set(d, lane);
  } else {
    const hn::RebindToUnsigned<D> bits;
    return hn::BitCast(d, hn::LoadU(bits, reinterpret_cast<const hn::TFromD<decltype(bits)>*>(from)));
  }
}
template <class D>
HWY_INLINE void store_bytes(D, hn::Vec<D> v, uint8_t* to) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    const hn::TFromD<D> lane = hn::GetLane(v);
    std::memcpy(to, &lane, sizeof lane);
  } else {
    const hn::RebindToUnsigned<D> bits;
    hn::StoreU(hn::BitCast(bits, v), bits, reinterpret_cast<hn::TFromD<decltype(bits)>*>(to));
  }
}

// The operands of a call, kOperands of them; 0: known at run time only. A copy of the addresses where they are few,
// since the compiler must assume that writing the result changes the caller's array.
template <int kOperands>
struct Operands {
  const uint8_t* at[kOperands];
  explicit Operands(const void* const* sources, int /*count*/) {
    for (int k = 0; k < kOperands; ++k) at[k] = static_cast<const uint8_t*>(sources[k]);
  }
  static constexpr int size() { return kOperands; }
  HWY_INLINE const uint8_t* operator[](int k) const { return at[k]; }
};
template <>
struct Operands<0> {
  const void* const* at;
  int count;
  explicit Operands(const void* const* sources, int source_count) : at(sources), count(source_count) {}
  int size() const { return count; }
  HWY_INLINE const uint8_t* operator[](int k) const { return static_cast<const uint8_t*>(at[k]); }
};

template <class Math>
struct Loop {
  using Finish = typename Math::Finish;

  template <class D, class Sources>
  static HWY_INLINE auto fold(D d, const Sources& sources, size_t at) {
    auto acc = Math::load(d, sources[0] + at);
    for (int k = 1; k < sources.size(); ++k) acc = Math::combine(d, acc, Math::load(d, sources[k] + at));
    return acc;
  }

  // Four vectors from `at` on, side by side, to hide the latency of the arithmetic.
  template <class D, class Sources>
  static HWY_INLINE void four(D d, uint8_t* dst, const Sources& sources, size_t at, const Finish& finish) {
    const size_t step = hn::Lanes(d) * sizeof(typename Math::Lane);
    const uint8_t* first = sources[0] + at;
    auto a = Math::load(d, first), b = Math::load(d, first + step);
    auto c = Math::load(d, first + 2 * step), e = Math::load(d, first + 3 * step);
    for (int k = 1; k < sources.size(); ++k) {
      const uint8_t* next = sources[k] + at;
      a = Math::combine(d, a, Math::load(d, next));
      b = Math::combine(d, b, Math::load(d, next + step));
      c = Math::combine(d, c, Math::load(d, next + 2 * step));
      e = Math::combine(d, e, Math::load(d, next + 3 * step));
    }
    Math::store(d, a, dst + at, finish);
    Math::store(d, b, dst + at + step, finish);
    Math::store(d, c, dst + at + 2 * step, finish);
    Math::store(d, e, dst + at + 3 * step, finish);
  }

  // Bytes from `begin` to `end`, at least one vector.
  template <class D, class Sources>
  static HWY_INLINE void vectors(D d, uint8_t* dst, const Sources& sources, size_t begin, size_t end,
                                 const Finish& finish) {
    const size_t step = hn::Lanes(d) * sizeof(typename Math::Lane);
    const size_t last = end - step;
    const auto last_acc = fold(d, sources, last);
    size_t at = begin;
    for (; last - at >= 4 * step; at += 4 * step) four(d, dst, sources, at, finish);
    for (; at < last; at += step) Math::store(d, fold(d, sources, at), dst + at, finish);
    Math::store(d, last_acc, dst + last, finish);
  }

  // Bytes from `begin` to `end`, more than none and less than two vectors of D: two that overlap, or one of those half
  // as long, a quarter, and so on.
  template <class D>
  static HWY_INLINE void few(D d, uint8_t* dst, const Operands<0>& sources, size_t begin, size_t end,
                             const Finish& finish) {
    const size_t step = hn::Lanes(d) * sizeof(typename Math::Lane);
    if constexpr (hn::MaxLanes(D()) > 1) {
      if (end - begin < step) return few(hn::Half<D>(), dst, sources, begin, end, finish);
    }
    const auto first = fold(d, sources, begin), last = fold(d, sources, end - step);
    Math::store(d, first, dst + begin, finish);
    Math::store(d, last, dst + end - step, finish);
  }

  // Bytes from `begin` to `end` of all operands.
  static void run(void* to, const void* const* sources, int source_count, size_t begin, size_t end,
                  const Finish& finish) {
    const typename Math::Full d;
    const size_t step = hn::Lanes(d) * sizeof(typename Math::Lane);
    auto* dst = static_cast<uint8_t*>(to);
    if (begin == end) return;
    if (end - begin < 2 * step) return few(d, dst, Operands<0>(sources, source_count), begin, end, finish);
    switch (source_count) {
      case 2: return vectors(d, dst, Operands<2>(sources, 2), begin, end, finish);
      case 3: return vectors(d, dst, Operands<3>(sources, 3), begin, end, finish);
      case 4: return vectors(d, dst, Operands<4>(sources, 4), begin, end, finish);
      default: return vectors(d, dst, Operands<0>(sources, source_count), begin, end, finish);
    }
  }
};

// For a Math that has nothing to finish.
struct NoFinish {};

// A kernel that ignores the divisor. kLaneBytes: where Lane is not the element, how long an element is.
template <class Math, size_t kElementBytes = sizeof(typename Math::Lane)>
void kernel(void* dst, const void* const* sources, int source_count, size_t element_count, uint32_t /*divisor*/) {
  Loop<Math>::run(dst, sources, source_count, 0, element_count * kElementBytes, NoFinish());
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#endif
