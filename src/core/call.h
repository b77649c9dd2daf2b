// One call as the caller made it: what, on which memory, until when; and the checks that need only the call and the
// group's size. Everything after this file may trust its arguments.
#pragma once

#include <cstdint>

#include "src/base/status.h"
#include "src/base/types.h"

namespace tutti::internal {

// The memory of one side of an operation: a buffer, or a list of `size` equal pieces.
struct Memory {
  const void* buffer = nullptr;
  const void* const* pieces = nullptr;  // read during the call only
  bool is_list = false;

  static Memory of(const void* buffer) { return {buffer, nullptr, false}; }
  static Memory list(const void* const* pieces) { return {nullptr, pieces, true}; }
};

struct Call {
  Signature signature;
  Memory input;
  Memory output;
  int peer = -1;           // send, recv
  int64_t timeout_us = 0;  // 0: the group's
};

// What check_call found out on the way.
struct CheckedCall {
  bool in_place = false;
  // Memory that this rank's part really uses: the ignored side of a rooted operation is cleared.
  Memory input;
  Memory output;
};

// Refuses what is wrong for rank `rank` of `size`: values out of range, missing memory, forbidden overlap.
Result<CheckedCall> check_call(const Call& call, int rank, int size);

// Bytes of a side of the operation on this rank; 0 where the side is not used.
uint64_t input_bytes(const Signature& signature, int rank, int size);
uint64_t output_bytes(const Signature& signature, int rank, int size);

}  // namespace tutti::internal
