#include "src/core/plan.h"

#include <algorithm>
#include <map>

#include "src/core/work.h"

namespace tutti::internal {

size_t PlanKeyHash::operator()(const PlanKey& key) const {
  const Signature& s = key.signature;
  uint64_t hash = s.count * 0x9e3779b97f4a7c15u;
  const uint64_t rest = static_cast<uint64_t>(static_cast<uint32_t>(s.root + 1)) << 32 |
                        static_cast<uint64_t>(s.operation) << 24 | static_cast<uint64_t>(s.type) << 16 |
                        static_cast<uint64_t>(s.op) << 8 | uint64_t(key.in_place) << 2 |
                        uint64_t(key.input_is_list) << 1 | uint64_t(key.output_is_list);
  hash ^=
      (rest + static_cast<uint64_t>(static_cast<uint32_t>(key.peer + 1)) * 0xbf58476d1ce4e5b9u) * 0x94d049bb133111ebu;
  return hash ^ hash >> 29;
}

Plan::Plan(const PlanKey& key, Schedule schedule, const char* algorithm, std::span<const int> world_ranks,
           const Reduction& reduction, uint64_t piece_bytes)
    : key_(key),
      schedule_(std::move(schedule)),
      algorithm_(algorithm),
      reduction_(reduction),
      piece_bytes_(piece_bytes) {
  number_messages(world_ranks);
  for (uint32_t i = 0; i < schedule_.steps.size(); ++i) {
    dependency_counts_.push_back(schedule_.steps[i].dependency_count);
    if (schedule_.steps[i].dependency_count == 0) roots_.push_back(i);
  }
}

Plan::~Plan() = default;

bool Plan::takes_messages(const Step& step) const {
  return std::ranges::any_of(operand_messages(step), [](const Endpoint& from) { return from.peer >= 0; });
}

// The k-th message to a peer meets the k-th that the peer takes from here, both counted in step order.
void Plan::number_messages(std::span<const int> world_ranks) {
  std::map<int, uint64_t> sent, taken;
  messages_.resize(schedule_.peers.size());
  operand_messages_.resize(schedule_.operands.size());
  for (const Step& step : schedule_.steps) {
    auto& counters = step.kind == StepKind::send ? sent : taken;
    for (uint32_t i = step.first_peer; i < step.first_peer + step.peer_count; ++i) {
      const int peer = world_ranks[schedule_.peers[i]];
      messages_[i] = {peer, counters[peer]++};
    }
    for (uint32_t i = step.first_operand; i < step.first_operand + step.operand_count; ++i) {
      if (schedule_.operands[i].peer == Operand::kLocal) continue;
      const int peer = world_ranks[schedule_.operands[i].peer];
      operand_messages_[i] = {peer, counters[peer]++};
    }
  }
  for (const auto* counters : {&sent, &taken})
    for (const auto& [peer, messages] : *counters) peers_.push_back(peer);
  std::ranges::sort(peers_);
  peers_.erase(std::unique(peers_.begin(), peers_.end()), peers_.end());
}

}  // namespace tutti::internal
