// See tree_steps.h. Invariant: a segment depends on no other segment, but for the bound on what is in flight.
#include "algo/tree_steps.h"

#include <algorithm>
#include <vector>

#include "algo/partition.h"

namespace tutti::internal {
namespace {

// Enough that a hop never waits for its own acknowledgement, few enough that partial results stay in the cache.
constexpr size_t kInFlight = 4;

// Scratch for the partial results of the segments in flight; a slot is used again after kInFlight segments, when the
// parent has read it.
class Slots {
 public:
  Slots(Builder& builder, size_t count, uint64_t bytes) {
    for (size_t i = 0; i < std::min(kInFlight, count); ++i) slots_.push_back(builder.scratch(bytes));
  }
  Slice next(uint64_t bytes) {
    Slice slot = slots_[used_++ % slots_.size()];
    slot.bytes = bytes;
    return slot;
  }

 private:
  std::vector<Slice> slots_;
  size_t used_ = 0;
};

}  // namespace

void tree_reduce(Builder& builder, const Tree& tree) {
  const Problem& problem = builder.problem();
  const auto pieces = segments({0, problem.bytes()}, problem.segment_bytes);
  const bool is_root = tree.parent < 0, is_leaf = tree.children.empty();

  std::vector<Operand> operands(1);
  for (const int child : tree.children) operands.push_back({.peer = child});
  Window in_flight(kInFlight);
  Slots slots(builder, is_root || is_leaf ? 0 : pieces.size(), pieces[0].bytes);
  for (const Range& piece : pieces) {
    const Slice own = builder.input(piece.offset, piece.bytes);
    if (is_leaf && !is_root) {
      in_flight.add(builder.send(tree.parent, own, in_flight.after()));
      continue;
    }
    operands[0].slice = own;
    const Slice result = is_root ? builder.output(piece.offset, piece.bytes) : slots.next(piece.bytes);
    in_flight.add(builder.reduce(operands, result, is_root ? Finish::yes : Finish::no, in_flight.after()));
    if (!is_root) builder.send(tree.parent, result);
  }
}

void tree_broadcast(Builder& builder, const Tree& tree, Slice source) {
  const Problem& problem = builder.problem();
  // The largest subtree has the longest way: its root is told first.
  const std::vector<int> children(tree.children.rbegin(), tree.children.rend());
  Window in_flight(kInFlight);
  for (const Range& piece : segments({0, problem.bytes()}, problem.segment_bytes)) {
    Slice slice = builder.output(piece.offset, piece.bytes);
    if (tree.parent >= 0) {
      in_flight.add(builder.recv(tree.parent, slice, in_flight.after()));
      builder.send(children, slice);
    } else {
      slice = {source.buffer, source.offset + piece.offset, piece.bytes};
      in_flight.add(builder.send(children, slice, in_flight.after()));
    }
  }
}

}  // namespace tutti::internal
