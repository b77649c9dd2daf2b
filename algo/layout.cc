// See layout.h. Pure arithmetic.
#include "algo/layout.h"

#include <algorithm>
#include <map>

namespace tutti::internal {

Layout::Layout(std::span<const int> node_of) {
  std::map<int, int> numbers;
  for (int rank = 0; rank < static_cast<int>(node_of.size()); ++rank) {
    const auto [found, is_new] = numbers.emplace(node_of[static_cast<size_t>(rank)], node_count());
    if (is_new) nodes_.emplace_back();
    auto& ranks = nodes_[static_cast<size_t>(found->second)];
    places_.push_back({found->second, static_cast<int>(ranks.size())});
    ranks.push_back(rank);
  }
  for (const auto& ranks : nodes_) {
    const auto count = static_cast<int>(ranks.size());
    fewest_ = fewest_ == 0 ? count : std::min(fewest_, count);
    most_ = std::max(most_, count);
  }
}

}  // namespace tutti::internal
