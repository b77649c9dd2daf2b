// See knomial.h. Pure arithmetic.
#include "algo/shapes/knomial.h"

#include <algorithm>
#include <cstdint>

#include "algo/shapes/powers.h"

namespace tutti::internal {
namespace {

// The weight of the lowest digit that is not 0; of place 0, the first power of the radix that is not below size.
int64_t weight_of(int place, int size, int radix) {
  int64_t weight = 1;
  while (place == 0 ? weight < size : place / weight % radix == 0) weight *= radix;
  return weight;
}

}  // namespace

Tree knomial_tree(int rank, int size, int root, int radix) {
  const int place = (rank - root + size) % size;
  const int64_t weight = weight_of(place, size, radix);
  const auto rank_at = [&](int64_t at) { return static_cast<int>((at + root) % size); };
  Tree tree;
  tree.depth = rounds(size, radix);
  if (place != 0) tree.parent = rank_at(place - place / weight % radix * weight);
  for (int64_t step = 1; step < weight; step *= radix)
    for (int digit = 1; digit < radix && place + digit * step < size; ++digit)
      tree.children.push_back(rank_at(place + digit * step));
  return tree;
}

int knomial_subtree(int place, int size, int radix) {
  return static_cast<int>(std::min<int64_t>(weight_of(place, size, radix), size - place));
}

}  // namespace tutti::internal
