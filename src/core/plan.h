// A plan: a schedule made ready to run on one group, any number of times and also several times at once. Peers are
// resolved to world ranks, messages are numbered, the reduction kernel is chosen. What changes from run to run lives in
// Work, which a plan hands out and takes back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "algo/schedule.h"
#include "src/base/kernel.h"
#include "src/base/types.h"
#include "transport/transport.h"

namespace tutti::internal {

class Work;

// What makes two calls take the same plan.
struct PlanKey {
  Signature signature;
  int peer = -1;  // send, recv
  bool in_place = false;
  bool input_is_list = false;
  bool output_is_list = false;
  const char* alias = nullptr;  // see Call
  bool operator==(const PlanKey&) const = default;
};

struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const;
};

class Plan {
 public:
  // `world_ranks`: of the group's ranks. `reduction` is unused where the operation does not reduce.
  Plan(const PlanKey& key, Schedule schedule, const char* algorithm, std::span<const int> world_ranks,
       const Reduction& reduction, uint64_t piece_bytes);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const PlanKey& key() const { return key_; }
  const Schedule& schedule() const { return schedule_; }
  const char* algorithm() const { return algorithm_; }
  const Reduction& reduction() const { return reduction_; }
  // Bytes of one piece of a list, for the sides that are lists.
  uint64_t piece_bytes() const { return piece_bytes_; }

  // The messages of a send or recv step, `match` holding the message's number between the two ranks.
  std::span<const Endpoint> messages(const Step& step) const {
    return {messages_.data() + step.first_peer, step.peer_count};
  }
  // The same for the operands of a reduce step; local operands have no peer.
  std::span<const Endpoint> operand_messages(const Step& step) const {
    return {operand_messages_.data() + step.first_operand, step.operand_count};
  }
  // Whether a reduce step takes messages, or is arithmetic on local memory.
  bool takes_messages(const Step& step) const;

  // How many earlier steps each step waits for, and the steps that wait for none.
  const std::vector<uint32_t>& dependency_counts() const { return dependency_counts_; }
  const std::vector<uint32_t>& roots() const { return roots_; }
  // The world ranks that it exchanges messages with, each once.
  const std::vector<int>& peers() const { return peers_; }

  // Works that wait to be used again.
  std::vector<std::unique_ptr<Work>>& idle_works() { return idle_works_; }
  // How many works are out; a plan in use is not thrown out of the cache.
  int works_out = 0;
  // When it was last used, in calls of its group.
  uint64_t last_use = 0;

 private:
  void number_messages(std::span<const int> world_ranks);

  PlanKey key_;
  Schedule schedule_;
  const char* algorithm_;
  Reduction reduction_;
  uint64_t piece_bytes_;
  std::vector<Endpoint> messages_;
  std::vector<Endpoint> operand_messages_;
  std::vector<uint32_t> dependency_counts_;
  std::vector<uint32_t> roots_;
  std::vector<int> peers_;
  std::vector<std::unique_ptr<Work>> idle_works_;
};

}  // namespace tutti::internal
