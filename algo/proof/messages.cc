// See messages.h. Pure functions.
#include "algo/proof/messages.h"

#include <algorithm>
#include <tuple>

#include "algo/partition.h"
#include "algo/proof/fault.h"

namespace tutti::internal::proof {
namespace {

// One end of a message.
struct End {
  int from = 0, to = 0;
  uint32_t step = 0;   // of the end's own rank
  uint32_t index = 0;  // of the message in the step
  uint64_t bytes = 0;
  std::pair<int, int> pair() const { return {from, to}; }
};

struct Ends {
  std::vector<End> sent, taken;
};

void list_ends(const Schedule& schedule, int rank, Ends& ends) {
  for (uint32_t id = 0; id < schedule.steps.size(); ++id) {
    const Step& step = schedule.steps[id];
    uint32_t index = 0;
    for (const int32_t peer : schedule.peers_of(step)) {
      if (step.kind == StepKind::send)
        ends.sent.push_back({rank, peer, id, index++, step.slice.bytes});
      else
        ends.taken.push_back({peer, rank, id, index++, step.slice.bytes});
    }
    for (const Operand& operand : schedule.operands_of(step))
      if (operand.peer != Operand::kLocal) ends.taken.push_back({operand.peer, rank, id, index++, step.slice.bytes});
  }
}

// By pair of ranks; within a pair in step order, as they were listed.
void sort_by_pair(std::vector<End>& ends) {
  std::stable_sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.pair() < b.pair(); });
}

Status unmatched(std::span<const Schedule> schedules, const End& end, bool is_send) {
  const int rank = is_send ? end.from : end.to;
  return fault(rank, schedules[static_cast<size_t>(rank)], end.step,
               is_send ? fmt::format("rank {} takes fewer messages", end.to)
                       : fmt::format("rank {} sends fewer messages", end.from));
}

Status check_pair_bound(std::span<const Schedule> schedules, const std::vector<End>& sent) {
  for (size_t i = 0; i + kMaxMessagesPerPair < sent.size(); ++i) {
    const End& beyond = sent[i + kMaxMessagesPerPair];
    if (sent[i].pair() == beyond.pair())
      return fault(beyond.from, schedules[static_cast<size_t>(beyond.from)], beyond.step,
                   fmt::format("is more than message {} to rank {}", kMaxMessagesPerPair, beyond.to));
  }
  return {};
}

}  // namespace

Result<Matching> match_messages(std::span<const Schedule> schedules) {
  Ends ends;
  Matching matching;
  for (size_t rank = 0; rank < schedules.size(); ++rank) {
    list_ends(schedules[rank], static_cast<int>(rank), ends);
    matching.taken.emplace_back(schedules[rank].steps.size());
    matching.takers.emplace_back(schedules[rank].steps.size());
  }
  sort_by_pair(ends.sent);
  sort_by_pair(ends.taken);
  TUTTI_RETURN_IF_ERROR(check_pair_bound(schedules, ends.sent));

  const size_t both = std::min(ends.sent.size(), ends.taken.size());
  for (size_t i = 0; i < both; ++i) {
    const End &sent = ends.sent[i], &taken = ends.taken[i];
    if (sent.pair() != taken.pair())
      return sent.pair() < taken.pair() ? unmatched(schedules, sent, true) : unmatched(schedules, taken, false);
    if (sent.bytes != taken.bytes)
      return fault(
          taken.to, schedules[static_cast<size_t>(taken.to)], taken.step,
          fmt::format("takes {} bytes where rank {} step {} sends {}", taken.bytes, sent.from, sent.step, sent.bytes));
    auto& from = matching.taken[static_cast<size_t>(taken.to)][taken.step];
    from.resize(std::max<size_t>(from.size(), taken.index + 1));
    from[taken.index] = {sent.from, sent.step};
    matching.takers[static_cast<size_t>(sent.from)][sent.step].push_back({taken.to, taken.step});
  }
  if (ends.sent.size() > both) return unmatched(schedules, ends.sent[both], true);
  if (ends.taken.size() > both) return unmatched(schedules, ends.taken[both], false);
  return matching;
}

}  // namespace tutti::internal::proof
