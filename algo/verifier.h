// Proves the schedules of all ranks of one operation by running them symbolically, on intervals of bytes:
//   - each step names memory that exists and may be touched so, and peers that exist; what it waits for stands earlier;
//     scratch stays within what the schedule declares, and that within twice the longest buffer, four times where ranks
//     are inside nodes and across
//   - no two steps of a rank, of which neither waits for the other, touch the same bytes if one writes
//   - the k-th message from A to B meets the k-th that B takes from A, with the same length, and there are no more than
//     kMaxMessagesPerPair
//   - every step completes, even if a send completes only when all its receivers have begun to receive
//   - the output holds what tutti.h says: of a reduction each rank's contribution exactly once, finished exactly once,
//     combined in the same order on all ranks that hold the same element; memory that is not output keeps its value
//   - of a barrier, no rank is done before every rank has begun
// Nothing here runs in an operation: it is for tests and tools.
#pragma once

#include <span>
#include <vector>

#include "algo/registry.h"
#include "src/base/status.h"

namespace tutti::internal {

// problems[r] and schedules[r] are rank r's. Code::internal names the first rank and step that are wrong, and how.
Status verify(std::span<const Problem> problems, std::span<const Schedule> schedules);

// Builds the schedules of all ranks of one problem, of which rank and in_place are replaced, and verifies them.
// in_place[r] is rank r's.
Status prove(const Algorithm& algorithm, const Problem& problem, const std::vector<bool>& in_place);

}  // namespace tutti::internal
