// See registry.h. The list is made once, at first use.
#include "algo/registry.h"

#include <vector>

#include "algo/collectives.h"

namespace tutti::internal {

std::span<const Algorithm> algorithms() {
  static const std::vector<Algorithm> everything = [] {
    std::vector<Algorithm> all;
    for (const auto list : {barrier_algorithms(), broadcast_algorithms(), reduce_algorithms(), all_reduce_algorithms(),
                            reduce_scatter_algorithms(), scatter_algorithms(), gather_algorithms(),
                            all_gather_algorithms(), all_to_all_algorithms(), send_recv_algorithms()})
      all.insert(all.end(), list.begin(), list.end());
    return all;
  }();
  return everything;
}

std::span<const Algorithm> algorithms(Operation operation) {
  const auto all = algorithms();
  size_t first = 0;
  while (all[first].operation != operation) ++first;
  size_t end = first;
  while (end < all.size() && all[end].operation == operation) ++end;
  return all.subspan(first, end - first);
}

}  // namespace tutti::internal
