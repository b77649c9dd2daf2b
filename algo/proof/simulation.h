// Runs all ranks' schedules symbolically. A step starts when all that it waits for is complete; a take (recv or reduce)
// completes when it and all its senders have started, a send when it has started and all its takers are complete. This
// is the least that any transport does: what completes here, completes under any order of events, because a step that
// completes earlier never holds another one back.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "algo/proof/expressions.h"
#include "algo/proof/memory.h"
#include "algo/proof/messages.h"

namespace tutti::internal::proof {

class Simulation {
 public:
  Simulation(std::span<const Problem> problems, std::span<const Schedule> schedules, const Matching& matching,
             Expressions& expressions);

  Status run();

  const Memory& memory(int rank) const { return memories_[static_cast<size_t>(rank)]; }
  // Whether `rank` was done only after `other` had begun, as its messages tell it. Known after barriers only.
  bool knows(int rank, int other) const;

 private:
  using Known = std::vector<uint64_t>;  // a bit for each rank that is known to have begun
  struct State {
    uint32_t waits = 0;   // for so many steps to complete
    uint32_t absent = 0;  // senders that have not started, takers that are not complete, and itself until started
    std::vector<Fragment> sent;  // what a send offers
    Known known;                 // barrier
  };

  const Schedule& schedule(GlobalStep at) const { return schedules_[static_cast<size_t>(at.rank)]; }
  const Step& step(GlobalStep at) const { return schedule(at).steps[at.step]; }
  State& state(GlobalStep at) { return states_[static_cast<size_t>(at.rank)][at.step]; }
  const std::vector<GlobalStep>& taken(GlobalStep at) const {
    return matching_.taken[static_cast<size_t>(at.rank)][at.step];
  }
  const std::vector<GlobalStep>& takers(GlobalStep at) const {
    return matching_.takers[static_cast<size_t>(at.rank)][at.step];
  }

  Status start(GlobalStep at);
  Status arrive(GlobalStep at);
  Status complete(GlobalStep at);
  Status take(GlobalStep at);
  Status reduce(GlobalStep at);
  Status check_all_completed() const;

  std::span<const Problem> problems_;
  std::span<const Schedule> schedules_;
  const Matching& matching_;
  Expressions& expressions_;
  const bool barrier_;
  std::vector<Memory> memories_;
  std::vector<std::vector<State>> states_;
  std::vector<Known> known_at_end_;
  std::deque<GlobalStep> ready_;
};

}  // namespace tutti::internal::proof
