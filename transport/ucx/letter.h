// What two transports write each other before they are connected: `hello` with the address of the one who asks, and
// `welcome`. Letters for another transport than this one (of an earlier or a foreign world) are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "transport/ucx/address.h"

namespace tutti::internal::ucx {

struct Letter {
  enum class Kind : uint32_t { hello = 1, welcome, refuse };
  Kind kind = Kind::hello;
  uint64_t to_nonce = 0;
  Address from;

  std::string encode() const;
  // Errors: invalid_argument.
  static Result<Letter> decode(std::string_view bytes);
};

}  // namespace tutti::internal::ucx
