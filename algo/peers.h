// Lists of ranks and operands that many algorithms need.
#pragma once

#include <vector>

#include "algo/problem.h"
#include "algo/schedule.h"

namespace tutti::internal {

// How many segments an algorithm keeps in flight to or from one rank, and how many messages of a linear operation into
// one rank: enough to cover the way, few enough for one port.
inline constexpr size_t kInFlightPerPeer = 8;
inline constexpr size_t kInFlightPerPort = 16;

// All ranks but `rank`, the next one first: so that not all turn to the same rank at the same moment.
inline std::vector<int> peers_after(int rank, int size) {
  std::vector<int> peers;
  peers.reserve(static_cast<size_t>(size));
  for (int distance = 1; distance < size; ++distance) peers.push_back((rank + distance) % size);
  return peers;
}

// One operand of each rank in rank order: a message, and `own` of this rank.
inline std::vector<Operand> all_in_rank_order(const Problem& problem, Slice own) {
  std::vector<Operand> operands;
  operands.reserve(static_cast<size_t>(problem.size));
  for (int rank = 0; rank < problem.size; ++rank)
    operands.push_back(rank == problem.rank ? Operand{.slice = own} : Operand{.peer = rank});
  return operands;
}

}  // namespace tutti::internal
