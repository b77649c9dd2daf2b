// The command line of tutti-perf, read and checked. Nothing here needs a world: the same arguments give the same answer
// on every rank.
#pragma once

#include <tutti/tutti.h>

#include <cstdint>
#include <optional>
#include <string>

#include "command_line.h"
#include "operation.h"

namespace tutti::perf {

struct Options {
  const Operation* operation = nullptr;
  uint64_t min_bytes = 8;
  uint64_t max_bytes = 16 << 20;
  uint64_t factor = 2;
  std::optional<uint64_t> iterations;  // none: as many as fit the time for one size
  std::optional<uint64_t> warmup;      // none: a tenth of the iterations
  tutti_type type = TUTTI_FLOAT32;
  tutti_op op = TUTTI_SUM;
  int root = 0;
  bool check = false;
  bool in_place = false;
  Memory memory = Memory::malloc;
  bool async = false;
  std::string algorithm;  // empty: the library's choice
  std::string json;       // empty: no file
  int flip_rank = -1;     // hidden: this rank spoils one bit of each checked result
};

using Parsed = ParsedAs<Options>;
Parsed parse(int argc, const char* const* argv);

// What is wrong with the options in a world of this size, or "".
std::string check_world(const Options& options, int size);

}  // namespace tutti::perf
