// The command line of tutti-p2p, read and checked. Nothing here needs a world.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "command_line.h"

namespace tutti::perf {

enum class Test { write_lat, send_lat, write_bw, bidirectional_bw };

struct TestKind {
  Test test;
  const char* name;
  const char* beside;  // the command of perftest whose table it is put beside
  bool measures_latency;
  const char* does;
};

std::span<const TestKind> tests();

struct P2pOptions {
  const TestKind* kind = nullptr;
  uint64_t min_bytes = 2;
  uint64_t max_bytes = 8 << 20;
  uint64_t factor = 2;
  std::optional<uint64_t> iterations;  // none: by size, see messages_for
  std::optional<uint64_t> warmup;      // none: by the iterations, see warmup_for
  std::optional<uint64_t> tx_depth;    // none: by size, see depth_for
  Memory memory = Memory::window;
  std::string json;    // empty: no file; "-": stdout
  int flip_rank = -1;  // hidden: this rank spoils one bit of each checked message
};

using P2pParsed = ParsedAs<P2pOptions>;
P2pParsed parse_p2p(int argc, const char* const* argv);

// What is wrong with a world of this size, or "".
std::string check_p2p_world(int size);

// Measured messages of one size, each way. Unless asked for: perftest's number up to 64 KiB, above it as many as come
// to the same bytes, 100 at least.
uint64_t messages_for(const P2pOptions& options, uint64_t bytes);
// Messages before them.
uint64_t warmup_for(const P2pOptions& options, uint64_t messages);
// Messages under way at once in the tests of bandwidth. Unless asked for: 16, or as many as come to 32 MiB, 2 at least.
uint64_t depth_for(const P2pOptions& options, uint64_t bytes);

}  // namespace tutti::perf
