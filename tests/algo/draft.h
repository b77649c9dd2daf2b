// A schedule in a form that is easy to change: for tests that break one on purpose.
#pragma once

#include <algorithm>
#include <vector>

#include "algo/schedule.h"

namespace tutti::internal {

struct Draft {
  struct Item {
    Step step;
    std::vector<int32_t> peers;
    std::vector<Operand> operands;
    std::vector<size_t> after;
  };
  std::vector<Item> items;
  uint64_t scratch_bytes = 0;

  explicit Draft(const Schedule& schedule) : scratch_bytes(schedule.scratch_bytes) {
    for (const Step& step : schedule.steps) {
      const auto peers = schedule.peers_of(step);
      const auto operands = schedule.operands_of(step);
      items.push_back({step, {peers.begin(), peers.end()}, {operands.begin(), operands.end()}, {}});
    }
    for (size_t id = 0; id < items.size(); ++id)
      for (const uint32_t successor : schedule.successors_of(schedule.steps[id])) items[successor].after.push_back(id);
  }

  // Takes a step out; those that waited for it wait for what it waited for.
  void drop(size_t id) {
    const std::vector<size_t> before = items[id].after;
    for (Item& item : items) {
      const auto found = std::find(item.after.begin(), item.after.end(), id);
      if (found != item.after.end()) {
        item.after.erase(found);
        item.after.insert(item.after.end(), before.begin(), before.end());
      }
      for (size_t& step : item.after) step -= step > id ? 1 : 0;
      std::sort(item.after.begin(), item.after.end());
      item.after.erase(std::unique(item.after.begin(), item.after.end()), item.after.end());
    }
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(id));
  }

  // Whether a step waits for an earlier one through others, even without a direct mention.
  bool waits_through_others(size_t later, size_t earlier) const {
    for (const size_t before : items[later].after)
      if (before != earlier && before > earlier && waits(before, earlier)) return true;
    return false;
  }
  bool waits(size_t later, size_t earlier) const {
    for (const size_t before : items[later].after)
      if (before == earlier || (before > earlier && waits(before, earlier))) return true;
    return false;
  }

  Schedule schedule() const {
    Schedule result;
    result.scratch_bytes = scratch_bytes;
    for (size_t id = 0; id < items.size(); ++id) {
      Step step = items[id].step;
      step.first_peer = static_cast<uint32_t>(result.peers.size());
      step.peer_count = static_cast<uint32_t>(items[id].peers.size());
      result.peers.insert(result.peers.end(), items[id].peers.begin(), items[id].peers.end());
      step.first_operand = static_cast<uint32_t>(result.operands.size());
      step.operand_count = static_cast<uint32_t>(items[id].operands.size());
      result.operands.insert(result.operands.end(), items[id].operands.begin(), items[id].operands.end());
      step.dependency_count = static_cast<uint32_t>(items[id].after.size());
      step.first_successor = static_cast<uint32_t>(result.successors.size());
      for (size_t later = id + 1; later < items.size(); ++later)
        if (std::count(items[later].after.begin(), items[later].after.end(), id) > 0)
          result.successors.push_back(static_cast<uint32_t>(later));
      step.successor_count = static_cast<uint32_t>(result.successors.size()) - step.first_successor;
      result.steps.push_back(step);
    }
    return result;
  }
};

}  // namespace tutti::internal
