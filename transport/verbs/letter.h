// What two transports write to each other to connect: the asking rank's `hello`, the other's `welcome`, and `ready`
// when the first can receive too; or `refuse`. Parsed from outside: lengths and every field are checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "transport/verbs/address.h"

namespace tutti::internal::verbs {

struct Letter {
  enum class Kind : uint8_t { hello = 1, welcome, ready, refuse };
  // One queue pair: its number at the writer, and the path as the reader sees it.
  struct Line {
    Path path;
    uint32_t pair_number = 0;
  };

  Kind kind{};
  uint64_t to_nonce = 0;  // the reader's, which only ranks of its world know
  uint64_t from_nonce = 0;
  uint32_t credits = 0;  // of each queue pair: receive buffers of the writer's for the reader
  std::vector<Line> lines;
  std::string text;  // of refuse: why

  std::string encode() const;
  static Result<Letter> decode(std::string_view bytes);
};

}  // namespace tutti::internal::verbs
