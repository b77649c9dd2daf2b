// Sizes and depths of the transport. See docs/adr for the figures.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/kernel.h"

namespace tutti::internal::verbs {

// Work requests that a queue pair holds; of these some are kept for credits and goodbyes.
inline constexpr uint32_t kSendDepth = 128;
inline constexpr uint32_t kReservedSends = 4;
// An inline message asks for a completion only so often.
inline constexpr uint32_t kSignalEvery = kSendDepth / 4;

// Receive buffers of a port, shared by all peers, and how many of them one peer may fill unasked.
inline constexpr uint32_t kReceiveBuffers = 4096;
inline constexpr uint32_t kMostCredits = 64;
inline constexpr uint32_t kFewestCredits = 8;
// For what is sent without a credit: two messages that return credits, and a goodbye.
inline constexpr uint32_t kReservedReceives = 3;
// So many used receive buffers are given back to the device at once.
inline constexpr uint32_t kReplenishBatch = 16;

// Copies of short messages that are too long to be inlined.
inline constexpr uint32_t kSendBuffers = 256;
// Asked for when a queue pair is made; a device may grant less.
inline constexpr uint32_t kInlineBytes = 220;

// Completions taken from the device at a time.
inline constexpr int kPollBatch = 16;

// A message is striped over several ports when each carries this much of it at least.
inline constexpr size_t kStripeBytes = size_t{64} << 10;

// Buffers of a port for pings that come and go, and how often each peer is sent one, for how long. With many peers more
// rarely: a ping is as long as a packet can be.
inline constexpr uint32_t kPingReceives = 64;
inline constexpr uint32_t kPingSends = 32;
inline constexpr int64_t kPingEveryUs = 5'000;
inline constexpr int64_t kPingEveryPeerUs = 20;
inline constexpr int64_t kPingLimitUs = 1'000'000;
// Between two looks at what has come.
inline constexpr int64_t kPingLookUs = 100;

// So long a peer that was told where to write may take to say that it will not.
inline constexpr int64_t kRevokeUs = 2'000'000;
// So long a leaving rank waits for its last messages to arrive.
inline constexpr int64_t kLingerUs = 2'000'000;

// So often an idle rank asks whether the peers that it waits for are still there.
inline constexpr int64_t kCheckEveryUs = 1'000'000;
// An idle rank looks again at the latest after this.
inline constexpr int kMaxSleepUs = 4000;

}  // namespace tutti::internal::verbs
