// One collective call on real memory, checked to the bit: fills the inputs, calls, and compares every output byte, the
// inputs that must not change and the bytes around the outputs.
#pragma once

#include <memory>
#include <string>

#include "elements.h"
#include "src/base/types.h"
#include "world.h"

namespace tutti_test {

using tutti::internal::Operation;

enum class MemoryKind { window, heap, unaligned };

struct Case {
  Operation operation{};
  uint64_t count = 0;
  tutti_type type = TUTTI_FLOAT32;
  tutti_op op = TUTTI_SUM;
  int root = 0;
  bool in_place = false;
  bool as_list = false;
  bool async = false;
  MemoryKind memory = MemoryKind::heap;
};

std::string to_string(const Case& c);

// Runs the case on this rank, with every other rank of the world doing the same; adds test failures where it is wrong.
void run_case(tutti_group* world, const Case& c);

}  // namespace tutti_test
