// See verifier.h. Each part may rely on what those before it have proved.
#include "algo/verifier.h"

#include "algo/proof/outcome.h"
#include "algo/proof/rank_check.h"

namespace tutti::internal {

Status verify(std::span<const Problem> problems, std::span<const Schedule> schedules) {
  for (size_t rank = 0; rank < problems.size(); ++rank)
    TUTTI_RETURN_IF_ERROR(proof::check_rank(problems[rank], schedules[rank]));
  const Result<proof::Matching> matching = proof::match_messages(schedules);
  if (!matching.ok()) return matching.status();
  proof::Expressions expressions(static_cast<int>(problems.size()));
  proof::Simulation simulation(problems, schedules, matching.value(), expressions);
  TUTTI_RETURN_IF_ERROR(simulation.run());
  return proof::check_outcome(problems, simulation, expressions);
}

Status prove(const Algorithm& algorithm, const Problem& problem, const std::vector<bool>& in_place) {
  std::vector<Problem> problems(static_cast<size_t>(problem.size), problem);
  std::vector<Schedule> schedules;
  for (size_t rank = 0; rank < problems.size(); ++rank) {
    problems[rank].rank = static_cast<int>(rank);
    problems[rank].in_place = in_place[rank];
    Builder builder(problems[rank]);
    algorithm.build(builder);
    schedules.push_back(builder.take());
  }
  return verify(problems, schedules);
}

}  // namespace tutti::internal
