// What a rank publishes: who it is, and where UCX finds its worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace tutti::internal::ucx {

// Of a worker's address: it travels in a letter too.
inline constexpr size_t kMostWorkerBytes = 3584;

struct Address {
  int rank = -1;
  uint64_t nonce = 0;  // of this transport: a stale or foreign request does not know it
  std::string worker;  // UCX's own form

  std::string encode() const;
  // Errors: invalid_argument. UCX trusts the bytes that it is given, so a sum over them tells whether they are what a
  // worker has written.
  static Result<Address> decode(std::string_view text);
};

}  // namespace tutti::internal::ucx
