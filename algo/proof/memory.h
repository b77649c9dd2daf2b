// The symbolic memory of one rank: for each byte of its three buffers, which expression it holds, at which position.
#pragma once

#include <array>
#include <vector>

#include "algo/interval_map.h"
#include "algo/problem.h"
#include "algo/proof/expressions.h"
#include "algo/schedule.h"

namespace tutti::internal::proof {

// The byte at place x (of a buffer, or of a slice) holds the node's byte at position x + shift.
struct Value {
  NodeId node = kUndefined;
  uint64_t shift = 0;  // modulo 2^64
  bool operator==(const Value&) const = default;
};

// A run of one value; places count from the beginning of the slice that was read.
struct Fragment {
  uint64_t begin = 0, end = 0;
  Value value;
};

class Memory {
 public:
  // What the rank's buffers hold before the operation.
  Memory(const Problem& problem, const Expressions& expressions) {
    const uint64_t bytes = input_bytes(problem);
    const Aliasing shared = aliasing(problem);
    const bool in_output = shared.kind == Aliasing::Kind::input_in_output;
    const uint64_t begin = in_output ? shared.offset : 0;
    buffers_[in_output ? 1 : 0].assign(begin, begin + bytes, {expressions.input_of(problem.rank), -begin});
  }

  std::vector<Fragment> read(const Slice& slice) const {
    std::vector<Fragment> fragments;
    buffer(slice).visit(slice.offset, slice.offset + slice.bytes,
                        [&](uint64_t begin, uint64_t end, const Value& value) {
                          const uint64_t shift = value.node == kUndefined ? 0 : value.shift + slice.offset;
                          fragments.push_back({begin - slice.offset, end - slice.offset, {value.node, shift}});
                        });
    return fragments;
  }

  void write(const Slice& slice, const std::vector<Fragment>& fragments) {
    for (const Fragment& fragment : fragments)
      buffers_[static_cast<size_t>(slice.buffer)].assign(slice.offset + fragment.begin, slice.offset + fragment.end,
                                                         {fragment.value.node, fragment.value.shift - slice.offset});
  }

 private:
  const IntervalMap<Value>& buffer(const Slice& slice) const { return buffers_[static_cast<size_t>(slice.buffer)]; }

  std::array<IntervalMap<Value>, 3> buffers_;
};

}  // namespace tutti::internal::proof
