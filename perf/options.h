// The command line of tutti-perf, read and checked. Nothing here needs a world: the same arguments give the same answer
// on every rank.
#pragma once

#include <tutti/tutti.h>

#include <cstdint>
#include <optional>
#include <string>

#include "operation.h"

namespace tutti::perf {

enum class Memory { window, malloc };

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

// Options, or the text to print and the status to exit with: help is 0, a usage error 2.
struct Parsed {
  std::optional<Options> options;
  std::string text;
  int status = 0;
};
Parsed parse(int argc, const char* const* argv);

// "64", "4K", "16M", "1G" (powers of 1024). Throws std::invalid_argument saying what is wrong.
uint64_t parse_bytes(const std::string& text);

// What is wrong with the options in a world of this size, or "".
std::string check_world(const Options& options, int size);

}  // namespace tutti::perf
