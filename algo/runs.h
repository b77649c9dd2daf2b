// Runs of blocks modulo the number of ranks: consecutive ranks' blocks in their final place, which may pass the end of
// the buffer and go on at its beginning.
#pragma once

#include <vector>

#include "algo/partition.h"

namespace tutti::internal {

// Where the blocks of `count` consecutive ranks from `first` on lie: one range, or two where they pass the last rank.
inline std::vector<Range> block_runs(const Problem& problem, int first, int count) {
  const int before_end = problem.size - first;
  const auto range = [&](int at, int blocks) {
    return Range{block(problem, at).offset, static_cast<uint64_t>(blocks) * problem.bytes()};
  };
  if (count <= before_end) return {range(first, count)};
  return {range(first, before_end), range(0, count - before_end)};
}

}  // namespace tutti::internal
