// See partition.h. Pure arithmetic.
#include "algo/partition.h"

#include <algorithm>
#include <cmath>

namespace tutti::internal {
namespace {

constexpr uint64_t kLineBytes = 64;
constexpr double kMinSegment = 16 << 10, kMaxSegment = 256 << 10;

uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

}  // namespace

Range part(uint64_t bytes, int parts, int index) {
  const uint64_t lines = ceil_div(bytes, kLineBytes);
  const auto n = static_cast<uint64_t>(parts);
  const auto begin_of = [&](uint64_t i) {
    // lines * i / n, without the product that may not fit.
    return std::min(bytes, (lines / n * i + lines % n * i / n) * kLineBytes);
  };
  const uint64_t begin = begin_of(static_cast<uint64_t>(index));
  return {begin, begin_of(static_cast<uint64_t>(index) + 1) - begin};
}

std::vector<Range> segments(Range range, uint64_t segment_bytes) {
  if (segment_bytes == 0 || range.bytes <= segment_bytes) return {range};
  std::vector<Range> pieces;
  pieces.reserve(ceil_div(range.bytes, segment_bytes));
  for (uint64_t done = 0; done < range.bytes; done += segment_bytes)
    pieces.push_back({range.offset + done, std::min(segment_bytes, range.bytes - done)});
  return pieces;
}

uint64_t pipeline_segment(uint64_t bytes, int depth, double extra_us, double beta_us_per_byte,
                          uint64_t messages_per_segment) {
  const double ideal = std::sqrt(static_cast<double>(bytes) * extra_us / (std::max(depth, 1) * beta_us_per_byte));
  const auto wanted = static_cast<uint64_t>(std::clamp(ideal, kMinSegment, kMaxSegment));
  const uint64_t most = std::max<uint64_t>(kMaxMessagesPerPair / messages_per_segment, 1);
  return ceil_div(std::max(wanted, ceil_div(bytes, most)), kLineBytes) * kLineBytes;
}

}  // namespace tutti::internal
