// Sizes and depths of the transport. See docs/adr/0008.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::internal::ucx {

// Up to here a message travels at once, copied.
inline constexpr size_t kShortBytes = size_t{64} << 10;
// Short messages to one peer that UCX has not sent yet.
inline constexpr uint32_t kMostWaiting = 64;
// A long message goes in pieces: when its receiver gives up, no more than these are still under way.
inline constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
inline constexpr uint32_t kPiecesUnderWay = 4;
// Pieces that UCX hands in whole, from its own memory: with their frame one segment of TCP, which is received by one
// call and needs not be put together. Whole elements of every type.
inline constexpr const char* kTcpSegment = "128k";
inline constexpr uint64_t kWholePieceBytes = uint64_t{120} << 10;
static_assert(kWholePieceBytes % 64 == 0);

// So long a peer may take to finish the pieces that are under way when an operation is given up.
inline constexpr int64_t kGiveUpUs = 2'000'000;
// So long a leaving rank waits for its last messages to arrive.
inline constexpr int64_t kLingerUs = 2'000'000;
inline constexpr int64_t kCloseUs = 20'000;
// So long after a peer is said to be gone its last messages are waited for.
inline constexpr int64_t kPatienceUs = 500'000;
// An idle rank looks again at the latest after this.
inline constexpr int kMaxSleepUs = 4000;

}  // namespace tutti::internal::ucx
