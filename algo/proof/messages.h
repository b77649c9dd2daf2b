// Which send meets which receive, over all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/schedule.h"
#include "src/base/status.h"

namespace tutti::internal::proof {

// A step of any rank.
struct GlobalStep {
  int rank = 0;
  uint32_t step = 0;
};

// taken[i] of a step: the send that its i-th message comes from. The messages of a recv are one, those of a reduce its
// operands that are peers, in order.
struct Matching {
  std::vector<std::vector<std::vector<GlobalStep>>> taken;   // by rank, by step
  std::vector<std::vector<std::vector<GlobalStep>>> takers;  // of a send: by whom it is taken
};

Result<Matching> match_messages(std::span<const Schedule> schedules);

}  // namespace tutti::internal::proof
