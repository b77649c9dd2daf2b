// The sizes at which the transport changes its way. Measured by perf/bench_shm; see docs/adr for the figures.
#pragma once

#include <cstddef>

namespace tutti::internal::shm {

// Up to here a message is staged: copied once by the sender, which is then done. Above, it is read in place. What lies
// in a window is cheap to read in place, ordinary memory costs its reader a system call.
inline constexpr size_t kStageWindowBytes = 512;
inline constexpr size_t kStageMemoryBytes = 32768;

// Copies and reductions longer than this are done in pieces, one a poll, so that other messages move meanwhile.
inline constexpr size_t kPieceBytes = size_t{512} << 10;

// What is read from a peer's ordinary memory at a time, to be reduced while it is in the cache.
inline constexpr size_t kReadChunkBytes = 65536;

// Copies of messages from this size on are stored past the cache: they do not stay in it anyway.
inline constexpr size_t kStreamingStoreBytes = size_t{8} << 20;

// Readers of a send that there is room for from the start.
inline constexpr size_t kUsualReaders = 8;

// So many empty polls in a row before released slots are told to their owners in cells of their own.
inline constexpr int kIdlePollsBeforeFlush = 32;

// An idle rank looks again at the latest after this.
inline constexpr int kMaxSleepUs = 4000;

}  // namespace tutti::internal::shm
