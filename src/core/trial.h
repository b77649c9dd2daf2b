// Who tries, for each two nodes that verbs would join, whether packets come through, and what follows from what the two
// have heard. Pure: alike on all ranks, from what all know.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "transport/prober.h"

namespace tutti::internal {

// Two ranks that try for their nodes; `lower` < `upper`.
struct Delegates {
  int lower = -1;
  int upper = -1;

  bool operator==(const Delegates&) const = default;
};

// For each two nodes the lowest of their ranks that are joined. `node_of`: by rank.
std::vector<Delegates> delegates(std::span<const int> node_of, const std::function<bool(int, int)>& is_joined);

// What one rank has heard of others, by rank.
using Hearings = std::map<int, Hearing>;
// Of very many troubles the last lose their words.
std::string encode(const Hearings& hearings);
// Errors: mismatch.
Result<Hearings> decode_hearings(std::string_view text);

// What two ranks know of the way between them.
struct Trial {
  bool is_broken = false;  // packets come through on no path
  std::string why;         // broken: what was seen; else "", or what was not tried
  std::string silent;      // paths that stay silent while others do not
};
Trial trial_of(const Hearing& lower, const Hearing& upper);

// Something that was tried was not heard: it may have come since.
bool misses_any(const Hearings& hearings);

}  // namespace tutti::internal
