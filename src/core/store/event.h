// What a rank learns through the store about the others, and from them, after all have joined.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/status.h"

namespace tutti::internal {

struct Event {
  enum class Kind {
    peer_failed,  // `rank` died: its connection ended without a goodbye, or another rank's transport lost it
    left,         // `rank` has left in order
    aborted,      // `rank` gave up the group of `channel`: code and text say why
    store_lost,   // the store has ended: nothing more will be heard of anyone. `rank` is the one that served it, or 0
    letter,       // `rank` has sent this one a letter: text
  };
  Kind kind{};
  int rank = -1;
  uint64_t channel = 0;
  Code code = Code::ok;
  int failed_rank = -1;  // aborted, with code peer_failed: whose failure it was
  std::string text;
};

}  // namespace tutti::internal
