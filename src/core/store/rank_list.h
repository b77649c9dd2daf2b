// Ranks as people read them.
#pragma once

#include <span>
#include <string>

namespace tutti::internal {

// "rank 2", "ranks 2 and 3", "ranks 1, 2, 3 and 4080 more".
std::string list_ranks(std::span<const int> ranks);

}  // namespace tutti::internal
