// The k-ary exchange (recursive doubling for radix 2), for any number of ranks.
//
//   fold       0 1 | 2 3 | 4 | 5     6 ranks, radix 2: the largest power of the radix gives 4 teams; the others of a
//                                    team give their share to its first rank, the captain
//   round 0    0 <-> 2   4 <-> 5     captains of neighbouring teams exchange, in groups of `radix`
//   round 1    0 <-> 4   2 <-> 5     ... of teams that stand `radix` apart, and so on
//   unfold     0 -> 1, 2 -> 3        captains give the result to their team
//
// Teams are runs of ranks, and after each round a captain holds the shares of a run of teams. The members of a group
// hold neighbouring runs: combined in the group's order, shares stand in rank order, on all members alike.
#pragma once

#include <cstdint>
#include <vector>

#include "algo/shapes/powers.h"

namespace tutti::internal {

struct Exchange {
  int captain = 0;
  std::vector<int> team;                 // without the captain
  std::vector<std::vector<int>> groups;  // of each round, in order, this rank among them; only captains have any
};

inline Exchange exchange(int rank, int size, int radix) {
  const int teams = largest_power(size, radix);
  const int base = size / teams, longer = size % teams;  // the first `longer` teams have base+1 ranks
  const auto first_of = [&](int team) { return team * base + (team < longer ? team : longer); };
  const int team = rank < longer * (base + 1) ? rank / (base + 1) : longer + (rank - longer * (base + 1)) / base;

  Exchange shape;
  shape.captain = first_of(team);
  for (int member = shape.captain + 1; member < first_of(team + 1); ++member) shape.team.push_back(member);
  if (rank != shape.captain) return shape;
  for (int64_t distance = 1; distance < teams; distance *= radix) {
    const int64_t lowest = team - team / distance % radix * distance;
    auto& group = shape.groups.emplace_back();
    for (int digit = 0; digit < radix; ++digit) group.push_back(first_of(static_cast<int>(lowest + digit * distance)));
  }
  return shape;
}

}  // namespace tutti::internal
