// One call as the caller made it: what, on which memory, until when; and the checks that need only the call and the
// group's size. Everything after this file may trust its arguments.
#pragma once

#include <cstdint>

#include "src/base/status.h"
#include "src/base/types.h"

namespace tutti::internal {

// The memory of one side of an operation: a buffer, or a list of `size` equal pieces.
struct Memory {
  const void* address = nullptr;  // of the buffer, or of the list, which is read during the call only
  bool is_list = false;

  static Memory of(const void* buffer) { return {buffer, false}; }
  static Memory list(const void* const* pieces) { return {pieces, true}; }
  const void* buffer() const { return is_list ? nullptr : address; }
  const void* const* pieces() const { return is_list ? static_cast<const void* const*>(address) : nullptr; }
  bool operator==(const Memory&) const = default;
};

struct Call {
  Signature signature;
  Memory input;
  Memory output;
  int peer = -1;                // send, recv
  int64_t timeout_us = 0;       // 0: the group's
  const char* alias = nullptr;  // what the caller called, where that is not the operation: "split"
  bool operator==(const Call&) const = default;
};

// Refuses what is wrong on rank `rank` of `size`: values out of range, missing memory, forbidden overlap. Takes the
// sides that this rank does not use out of the call, and says whether the call is in place.
Status check_call(Call& call, int rank, int size, bool& in_place);

}  // namespace tutti::internal
