#include "src/core/work.h"

#include <algorithm>

namespace tutti::internal {

Work::Work(Plan& plan, Group& group, uint32_t id, void* scratch)
    : plan_(plan), group_(group), id_(id), scratch_(scratch) {
  const Schedule& schedule = plan.schedule();
  state.resize(schedule.steps.size());
  uint32_t most_peers = 0, most_operands = 0;
  for (const Step& step : schedule.steps) {
    most_peers = std::max(most_peers, step.peer_count);
    most_operands = std::max(most_operands, step.operand_count);
  }
  endpoints.resize(most_peers);
  operands.resize(most_operands);
  sources.resize(most_operands);
}

void Work::reset(const Buffers& buffers, int size) {
  buffers_ = buffers;
  buffers_.base[static_cast<int>(Buffer::scratch)] = scratch_;
  for (int side = 0; side < 2; ++side) {
    if (!buffers.pieces[side]) continue;
    piece_lists[side].assign(buffers.pieces[side], buffers.pieces[side] + size);
    buffers_.pieces[side] = piece_lists[side].data();
  }
  if (!status.ok()) status = Status();
  done = false;
  has_deadline = false;
  warned = false;
  then = nullptr;
  remaining = static_cast<uint32_t>(state.size());
  std::ranges::copy(plan_.dependency_counts(), state.begin());
}

std::byte* Work::at(const Slice& slice) const {
  const int buffer = static_cast<int>(slice.buffer);
  if (slice.buffer != Buffer::scratch && buffers_.pieces[buffer]) {
    const uint64_t piece = plan_.piece_bytes() ? slice.offset / plan_.piece_bytes() : 0;
    const auto* start = static_cast<const std::byte*>(buffers_.pieces[buffer][piece]);
    return const_cast<std::byte*>(start) + (slice.offset - piece * plan_.piece_bytes());
  }
  return static_cast<std::byte*>(const_cast<void*>(buffers_.base[buffer])) + slice.offset;
}

}  // namespace tutti::internal
