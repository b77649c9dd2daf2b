// Dissemination: in each round a rank tells what it knows to those radix-1 ranks that stand 1, 2, ... times the
// round's distance before it, and hears from those after it. Distances grow by the radix. Radix 2, 5 ranks, what rank 0
// knows:
//
//   start     0
//   round 0   0 1            distance 1: from 1
//   round 1   0 1 2 3        distance 2: from 2, which knows 2 3
//   round 2   0 1 2 3 4      distance 4: from 4, of which it needs only the first
//
// What is known is always a run that begins at the rank itself; the last round takes what is missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tutti::internal {

struct DisseminationExchange {
  int to = 0, from = 0;  // ranks
  int count = 0;         // how many ranks' share passes, in each direction
};

// The exchanges of each round.
inline std::vector<std::vector<DisseminationExchange>> dissemination(int rank, int size, int radix) {
  std::vector<std::vector<DisseminationExchange>> all;
  for (int64_t distance = 1; distance < size; distance *= radix) {
    auto& round = all.emplace_back();
    for (int64_t ahead = distance; ahead < std::min<int64_t>(distance * radix, size); ahead += distance)
      round.push_back({static_cast<int>((rank + size - ahead) % size), static_cast<int>((rank + ahead) % size),
                       static_cast<int>(std::min(distance, size - ahead))});
  }
  return all;
}

}  // namespace tutti::internal
