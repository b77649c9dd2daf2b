#include "src/core/trace.h"

#include <fmt/core.h>

#include <algorithm>

namespace tutti::internal {
namespace {

void add_peers(const Plan& plan, const Step& step, std::vector<int>& ranks) {
  for (const auto& messages : {plan.messages(step), plan.operand_messages(step)})
    for (const Endpoint& message : messages)
      if (message.peer >= 0) ranks.push_back(message.peer);
}

void sort_unique(std::vector<int>& ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

// The peers of those steps, each once, in order.
template <class Wanted>
std::vector<int> peers_where(const Work& work, Wanted wanted) {
  std::vector<int> ranks;
  const auto& steps = work.plan().schedule().steps;
  for (uint32_t i = 0; i < steps.size(); ++i)
    if (wanted(i)) add_peers(work.plan(), steps[i], ranks);
  sort_unique(ranks);
  return ranks;
}

}  // namespace

std::string describe(const Work& work) {
  const PlanKey& key = work.plan().key();
  std::string text = key.alias ? fmt::format("{}()", key.alias) : to_string(key.signature);
  if (key.signature.operation == Operation::send) text += fmt::format(" to rank {}", work.plan().peers()[0]);
  if (key.signature.operation == Operation::recv) text += fmt::format(" from rank {}", work.plan().peers()[0]);
  return fmt::format("{} #{}", text, work.sequence);
}

Status step_error(const Work& work, uint32_t index, const Completion& completion) {
  const Step& step = work.plan().schedule().steps[index];
  std::vector<int> ranks;
  add_peers(work.plan(), step, ranks);
  sort_unique(ranks);
  if (completion.code == Code::mismatch) {
    const char* const advice =
        is_pairwise(work.plan().key().signature.operation) ? "" : " (with TUTTI_CHECK=1 the message shows both)";
    return Status(Code::mismatch,
                  fmt::format("{}: a message between this rank and {} has {} bytes here and {} there: the calls differ "
                              "in count or type{}",
                              describe(work), rank_list(ranks), step.slice.bytes, completion.found_bytes, advice));
  }
  return Status(completion.code, fmt::format("{}: step {} with {} failed: {}", describe(work), index, rank_list(ranks),
                                             code_name(completion.code)));
}

std::vector<int> awaited_ranks(const Work& work) {
  return peers_where(work, [&](uint32_t step) { return work.state[step] == Work::kPosted || work.state[step] == 0; });
}

std::vector<int> heard_ranks(const Work& work) {
  const auto& steps = work.plan().schedule().steps;
  return peers_where(
      work, [&](uint32_t step) { return work.state[step] == Work::kDone && steps[step].kind != StepKind::send; });
}

std::string rank_list(const std::vector<int>& ranks) {
  constexpr size_t kMostNamed = 8;
  if (ranks.empty()) return "no rank";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const bool all = ranks.size() <= kMostNamed;
  const size_t named = all ? ranks.size() - 1 : kMostNamed;
  std::string text = "ranks ";
  for (size_t i = 0; i < named; ++i) text += fmt::format("{}{}", i ? ", " : "", ranks[i]);
  return text + (all ? fmt::format(" and {}", ranks.back()) : fmt::format(" and {} more", ranks.size() - named));
}

}  // namespace tutti::internal
