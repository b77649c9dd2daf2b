// One rank's side of a group: who its ranks are, the operation sequence, and the cache of plans. Guarded by the
// context's lock throughout.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "algo/layout.h"
#include "algo/selector.h"
#include "src/core/call.h"
#include "src/core/plan.h"
#include "src/core/verdict.h"
#include "src/core/work.h"

namespace tutti::internal {

class Context;

// Which ranks, in order, under which number.
struct Membership {
  uint64_t channel = 0;             // unique in the world, alike on all ranks of the group
  std::vector<uint64_t> ancestors;  // channels of the groups that it was made from
  std::vector<int> world_ranks;     // by rank in the group
  int rank = 0;                     // of this process in the group
};

class Group {
 public:
  Group(Context& context, Membership membership, int64_t timeout_us);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Context& context() const { return context_; }
  int rank() const { return membership_.rank; }
  int size() const { return static_cast<int>(membership_.world_ranks.size()); }
  const Membership& membership() const { return membership_; }
  int64_t timeout_us() const { return timeout_us_; }
  void set_timeout_us(int64_t timeout_us) { timeout_us_ = timeout_us; }

  // Checks the call and starts it. On success the work is the caller's until recycle().
  Status start(const Call& call, Work*& work);
  void recycle(Work& work);

  // What would be chosen for an operation of this group.
  Choice choice_for(Operation operation, uint64_t count, DataType type) const;

  // From the engine, when a work of this group has ended well: goes on with what stands behind it.
  void ended(Work& work);

  // Gives the group up: its works end with `status`, and later calls return it. `announce`: other ranks are told.
  void fail(const Status& status, bool announce);
  const Status& failure() const { return failure_; }
  // What its ranks say of a timeout.
  Verdict& verdict() { return verdict_; }
  bool has_rank(int world_rank) const;
  // Whether `channel` is this group or one that it was made from.
  bool descends_from(uint64_t channel) const;

  // Whether a work of this group is not done.
  bool is_running() const;
  // Works of this group that callers hold handles to.
  List<Work> handed_out;

  // Gives all plans and their memory back; no work is out.
  void drop_plans();

  // The number of the next operation.
  void set_sequence(uint32_t sequence) { sequence_ = sequence; }
  // "#3 broadcast(...), #4 ...": the last operations that were started here.
  std::string history() const;

 private:
  // Checks a call, and finds its buffers and its plan.
  Status resolve(Call call, Buffers& buffers, Plan*& plan);
  // A call that is not like the last one of its operation.
  [[gnu::noinline]] Status start_other(const Call& call, Work*& work);
  Status begin(const Call& call, const Buffers& buffers, Plan& plan, Work*& work);
  Status acquire(Plan& plan, const Buffers& buffers, int64_t timeout_us, Work*& work);
  [[gnu::cold]] Status add_work(Plan& plan);
  // The plan that a call takes; made when there is none yet.
  Status plan_for(const PlanKey& key, int64_t timeout_us, Plan*& plan);
  Result<std::unique_ptr<Plan>> make_plan(const PlanKey& key, Deadline deadline);
  void seat_ranks();
  uint64_t next_match_base(const Call& call);
  // Compares this rank's signature with the others', and then starts `main`.
  Status start_comparison(Work& main);
  Status compare(const Work& comparison) const;
  void make_room_for_plan();

  static constexpr size_t kMostPlans = 512;
  static constexpr size_t kHistory = 16;

  Context& context_;
  Membership membership_;
  int64_t timeout_us_;
  Status failure_;
  Verdict verdict_;
  uint32_t sequence_ = 0;
  // Where neighbours do not follow each other by rank: the ranks in an order in which they do, and each one's place
  // there.
  std::vector<int> near_ranks_, near_places_;
  // Who shares a node: by rank, and by place there.
  Layout layout_, near_layout_;
  std::vector<uint32_t> sent_, received_;  // per rank: how many send and recv calls were started
  uint64_t use_count_ = 0;
  std::unordered_map<PlanKey, std::unique_ptr<Plan>, PlanKeyHash> plans_;
  // The last call of each operation that was found right, and its plan: programs call the same again and again. Calls
  // with lists are not kept, since the pieces behind the same list may change.
  struct Recent {
    Call call;
    Buffers buffers;
    Plan* plan = nullptr;
  };
  std::array<Recent, kOperationCount> recent_{};
  std::array<Signature, kHistory> history_{};
};

}  // namespace tutti::internal
