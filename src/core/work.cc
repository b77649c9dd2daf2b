#include "src/core/work.h"

#include <algorithm>

#include "src/core/group.h"

namespace tutti::internal {

Work::Work(Plan& plan, Group& group, uint32_t id, void* scratch)
    : plan_(plan), group_(group), id_(id), channel_(group.membership().channel), scratch_(scratch) {
  const Schedule& schedule = plan.schedule();
  state.resize(schedule.steps.size());
  uint32_t most_operands = 0;
  for (const Step& step : schedule.steps) most_operands = std::max(most_operands, step.operand_count);
  operands.resize(most_operands);
  sources.resize(most_operands);
}

Work::~Work() = default;

void Work::copy_lists(int size) {
  for (int side = 0; side < 2; ++side) {
    if (!buffers_.pieces[side]) continue;
    piece_lists[side].assign(buffers_.pieces[side], buffers_.pieces[side] + size);
    buffers_.pieces[side] = piece_lists[side].data();
  }
}

const void* Work::in_list(const Slice& slice) const {
  const uint64_t piece = plan_.piece_bytes() ? slice.offset / plan_.piece_bytes() : 0;
  const auto* start = static_cast<const std::byte*>(buffers_.pieces[static_cast<int>(slice.buffer)][piece]);
  return start + (slice.offset - piece * plan_.piece_bytes());
}

}  // namespace tutti::internal
