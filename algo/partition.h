// How the bytes of an operation are cut: into one part for each rank, and into segments of a pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "algo/problem.h"

namespace tutti::internal {

struct Range {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool operator==(const Range&) const = default;
};

// Part `index` of the `parts` nearly equal parts of [0, bytes). Cut at multiples of 64 bytes: no element and, in
// aligned memory, no cache line belongs to two parts. Parts may be empty.
Range part(uint64_t bytes, int parts, int index);

// Block `index` of a buffer that holds one block of problem.bytes() for each rank.
inline Range block(const Problem& problem, int index) {
  return {static_cast<uint64_t>(index) * problem.bytes(), problem.bytes()};
}

// The range in pieces of segment_bytes (0: in one), the last one shorter; at least one piece, which may be empty.
std::vector<Range> segments(Range range, uint64_t segment_bytes);

// The most messages between an ordered pair of ranks in one operation: the message index has 16 bits.
inline constexpr uint64_t kMaxMessagesPerPair = 65535;

// The segment for a pipeline through `depth` hops: a balance of what each further segment costs (extra_us) against what
// waiting for the first costs, s = sqrt(bytes * extra_us / (depth * beta)), within [16 KiB, 256 KiB]; longer where
// `messages_per_segment` messages for each would pass the bound of a pair. A multiple of 64 bytes.
uint64_t pipeline_segment(uint64_t bytes, int depth, double extra_us, double beta_us_per_byte,
                          uint64_t messages_per_segment = 1);

}  // namespace tutti::internal
