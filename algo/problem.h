// One collective call as an algorithm sees it: pure numbers, alike on all ranks but for `rank`.
#pragma once

#include <cstdint>

#include "src/base/types.h"

namespace tutti::internal {

struct Problem {
  Operation operation{};
  int rank = 0;
  int size = 1;
  int root = 0;
  uint64_t count = 0;          // elements per rank, as in tutti.h
  uint32_t element_bytes = 1;
  bool in_place = false;       // on this rank; ranks may differ
  uint64_t segment_bytes = 0;  // pipeline segment, 0: whole messages
  int radix = 2;               // of trees and exchanges, for algorithms that have one

  uint64_t bytes() const { return count * element_bytes; }
};

}  // namespace tutti::internal
