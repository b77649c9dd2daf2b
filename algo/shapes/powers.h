// Powers of the radix against the number of ranks.
#pragma once

#include <cstdint>

namespace tutti::internal {

// The least r with radix^r >= size: how many rounds of a shape that multiplies by radix reach all ranks.
constexpr int rounds(int size, int radix) {
  int count = 0;
  for (int64_t reached = 1; reached < size; reached *= radix) ++count;
  return count;
}

// The largest power of radix that is not above size.
constexpr int largest_power(int size, int radix) {
  int64_t power = 1;
  while (power * radix <= size) power *= radix;
  return static_cast<int>(power);
}

}  // namespace tutti::internal
