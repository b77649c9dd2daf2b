#include "src/core/store/rank_list.h"

#include <fmt/core.h>

#include <algorithm>

namespace tutti::internal {

std::string list_ranks(std::span<const int> ranks) {
  constexpr size_t kMostShown = 16;
  const size_t shown = std::min(ranks.size(), kMostShown);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == ranks.size();
    if (i > 0) text += is_last ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (ranks.size() > shown) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

}  // namespace tutti::internal
