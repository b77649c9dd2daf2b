// What the operations on blocks share: where a segment of each rank's block lies.
#pragma once

#include <span>
#include <vector>

#include "algo/node_first/composer.h"

namespace tutti::internal::node_first {

// A buffer of one block for each rank.
struct Blocks {
  Builder& builder;
  Buffer buffer;

  // The piece of a rank's block, and of several ranks' blocks.
  Slice of(int rank, const Range& piece) const {
    const uint64_t offset = block(builder.problem(), rank).offset + piece.offset;
    return buffer == Buffer::input ? builder.input(offset, piece.bytes) : builder.output(offset, piece.bytes);
  }
  std::vector<Slice> of(std::span<const int> ranks, const Range& piece) const {
    std::vector<Slice> slices;
    slices.reserve(ranks.size());
    for (const int rank : ranks) slices.push_back(of(rank, piece));
    return slices;
  }
  // Of all ranks, node after node.
  std::vector<Slice> by_node(const Layout& layout, const Range& piece) const {
    std::vector<Slice> slices;
    for (int node = 0; node < layout.node_count(); ++node)
      for (const int rank : layout.ranks_of(node)) slices.push_back(of(rank, piece));
    return slices;
  }
};

// The slice as `count` pieces of so many bytes.
inline std::vector<Slice> cut(const Slice& slice, uint64_t bytes, uint64_t count) {
  std::vector<Slice> slices;
  slices.reserve(count);
  for (uint64_t i = 0; i < count; ++i) slices.push_back({slice.buffer, slice.offset + i * bytes, bytes});
  return slices;
}

// visit(lane, index) for each block that a lane may carry on some node; by index first, so that lanes take turns.
template <class Visit>
void for_each_carried(const Composer& composer, Visit visit) {
  for (int index = 0; index < composer.most_carried(); ++index)
    for (int lane = 0; lane < composer.lanes(); ++lane) visit(lane, index);
}

}  // namespace tutti::internal::node_first
