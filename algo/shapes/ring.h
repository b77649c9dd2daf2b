// The ring: each rank sends to the right only, and blocks travel.
//
//   ... -> rank-1 -> rank -> rank+1 -> ...  (modulo size)
//
// A block that starts at rank b is, after k hops, at rank b+k: so a rank sees at hop k the block that started at
// rank-k.
#pragma once

namespace tutti::internal {

struct Ring {
  int rank, size;
  int right() const { return (rank + 1) % size; }
  int left() const { return (rank + size - 1) % size; }
  // The rank `distance` places to the left, distance <= 2 * size.
  int from(int distance) const { return (rank + 2 * size - distance) % size; }
};

}  // namespace tutti::internal
