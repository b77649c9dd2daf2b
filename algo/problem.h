// One collective call as an algorithm sees it: pure numbers, alike on all ranks but for `rank` and `in_place`.
#pragma once

#include <cstdint>

#include "src/base/types.h"

namespace tutti::internal {

struct Algorithm;
class Layout;

// How one stage of a composed algorithm is done.
struct Stage {
  const Algorithm* algorithm = nullptr;
  uint64_t segment_bytes = 0;
  int radix = 2;
  bool operator==(const Stage&) const = default;
};

// What a node-first algorithm is composed of (algo/node_first/): stages inside the nodes, across, inside again, and how
// many ranks of a node carry data across.
struct Composition {
  int lanes = 1;
  Stage in, across, out;
  bool operator==(const Composition&) const = default;
};

struct Problem {
  Operation operation{};
  int rank = 0;
  int size = 1;
  int root = 0;        // send and recv: the other rank
  uint64_t count = 0;  // elements per rank, as in tutti.h
  uint32_t element_bytes = 1;
  bool in_place = false;           // on this rank; ranks may differ
  uint64_t segment_bytes = 0;      // pipeline segment, 0: whole messages
  int radix = 2;                   // of trees and exchanges, for algorithms that have one
  const Layout* layout = nullptr;  // who shares a node; null: all do. Outlives the problem
  Composition composition{};       // for algorithms that are composed of others

  uint64_t bytes() const { return count * element_bytes; }
};

// How input and output share memory on this rank, and so which buffer a schedule names: slices of the one are written
// as slices of the other, `offset` bytes further on.
struct Aliasing {
  enum class Kind : uint8_t {
    none,
    input_in_output,  // the schedule names no input
    output_in_input,  // the schedule names no output
  };
  Kind kind = Kind::none;
  uint64_t offset = 0;
};
Aliasing aliasing(const Problem& problem);

// Bytes of the caller's buffers on this rank; 0 where the operation has none, or ignores it.
uint64_t input_bytes(const Problem& problem);
uint64_t output_bytes(const Problem& problem);

}  // namespace tutti::internal
