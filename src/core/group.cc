#include "src/core/group.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "algo/kernels/kernels.h"
#include "algo/pieces.h"
#include "algo/selector.h"
#include "src/base/log.h"
#include "src/core/context.h"
#include "src/core/trace.h"

namespace tutti::internal {
namespace {

// What a message's match is made of: operation sequence << 32 | number of the message. The upper bits of the number
// tell the comparison of signatures and the send/recv pairs, which count for themselves, from the operation proper.
constexpr uint64_t kComparison = 1u << 30;
constexpr uint64_t kPairwise = 1u << 31;

// A signature as it travels for comparison: fixed size, no padding.
struct WireSignature {
  uint64_t count;
  int32_t root;
  uint8_t operation, type, op, zero;
  uint64_t sequence;
};
static_assert(sizeof(WireSignature) == 24);

Signature from_wire(const WireSignature& wire) {
  return {static_cast<Operation>(wire.operation), static_cast<DataType>(wire.type), static_cast<ReduceOp>(wire.op),
          wire.root, wire.count};
}

bool is_pairwise(Operation operation) { return operation == Operation::send || operation == Operation::recv; }

Problem problem_of(const PlanKey& key, int rank, int size) {
  const Signature& s = key.signature;
  Problem problem;
  problem.operation = s.operation;
  problem.rank = rank;
  problem.size = size;
  problem.root = is_pairwise(s.operation) ? key.peer : std::max(s.root, 0);
  problem.count = s.count;
  problem.element_bytes = static_cast<uint32_t>(type_bytes(s.type));
  problem.in_place = key.in_place;
  return problem;
}

}  // namespace

Group::Group(Context& context, Membership membership, int64_t timeout_us)
    : context_(context),
      membership_(std::move(membership)),
      timeout_us_(timeout_us),
      sent_(membership_.world_ranks.size()),
      received_(membership_.world_ranks.size()) {}

Group::~Group() = default;

uint64_t Work::channel() const { return group_.membership().channel; }

Result<Work*> Group::start(const Call& call) {
  auto checked = check_call(call, rank(), size());
  if (!checked) return checked.status();
  if (!failure_.ok()) return failure_;
  const PlanKey key{call.signature, call.peer, checked->in_place, checked->input.is_list, checked->output.is_list};
  Buffers buffers;
  buffers.base[0] = checked->input.buffer;
  buffers.base[1] = checked->output.buffer;
  buffers.pieces[0] = checked->input.pieces;
  buffers.pieces[1] = checked->output.pieces;
  auto prepared = prepare(key, buffers, 0, call.timeout_us ? call.timeout_us : timeout_us_);
  if (!prepared) {
    fail(prepared.status(), true);
    return prepared;
  }
  Work& work = **prepared;
  // From here on the operation takes place: its number is used up.
  work.match_base = next_match_base(call);
  work.sequence = static_cast<uint32_t>(work.match_base >> 32);
  if (context_.config().check() && size() > 1 && !is_pairwise(call.signature.operation)) {
    auto comparison = compare_before(work);
    if (!comparison) {
      fail(comparison.status(), true);
      return comparison;
    }
    context_.engine().start(**comparison);
  } else {
    context_.engine().start(work);
  }
  return &work;
}

uint64_t Group::next_match_base(const Call& call) {
  const Operation operation = call.signature.operation;
  if (is_pairwise(operation)) {
    auto& counter = operation == Operation::send ? sent_[call.peer] : received_[call.peer];
    return static_cast<uint64_t>(counter++) << 32 | kPairwise;
  }
  history_[sequence_ % kHistory] = call.signature;
  return static_cast<uint64_t>(sequence_++) << 32;
}

Result<Work*> Group::prepare(const PlanKey& key, const Buffers& buffers, uint64_t match_base, int64_t timeout_us) {
  auto plan = plan_for(key);
  if (!plan) return plan.status();
  auto acquired = acquire(**plan);
  if (!acquired) return acquired;
  Work& work = **acquired;
  Buffers own = buffers;
  for (int side = 0; side < 2; ++side) {
    if (!buffers.pieces[side]) continue;
    work.piece_lists[side].assign(buffers.pieces[side], buffers.pieces[side] + size());
    own.pieces[side] = work.piece_lists[side].data();
  }
  work.reset(own, match_base);
  work.timeout_us = timeout_us;
  return &work;
}

Result<Plan*> Group::plan_for(const PlanKey& key) {
  Plan*& last = last_plans_[static_cast<size_t>(key.signature.operation)];
  if (!last || !(last->key() == key)) {
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      auto made = make_plan(key);
      if (!made) return made.status();
      make_room_for_plan();
      found = plans_.emplace(key, std::move(made.value())).first;
    }
    last = found->second.get();
  }
  last->last_use = ++use_count_;
  return last;
}

Choice Group::choice_for(Operation operation, uint64_t count, DataType type) const {
  return context_.choose(problem_of({{operation, type, ReduceOp::sum, 0, count}}, rank(), size()));
}

Result<std::unique_ptr<Plan>> Group::make_plan(const PlanKey& key) {
  const Choice choice = context_.choose(problem_of(key, rank(), size()));
  Schedule schedule = build(choice);
  const uint64_t piece_bytes = choice.problem.bytes();
  if (key.input_is_list || key.output_is_list)
    schedule = split_pieces(schedule, key.input_is_list ? piece_bytes : 0, key.output_is_list ? piece_bytes : 0);
  Reduction reduction;
  if (is_reducing(key.signature.operation)) {
    reduction.kernel = kernel_for(key.signature.type, key.signature.op);
    reduction.element_bytes = choice.problem.element_bytes;
    if (key.signature.op == ReduceOp::average) reduction.divisor = static_cast<uint32_t>(size());
  }
  auto plan = std::make_unique<Plan>(key, std::move(schedule), choice.algorithm->name, membership_.world_ranks,
                                     reduction, piece_bytes);
  log_debug("{} on {} ranks: {} ({} steps, segments of {} bytes, predicted {:.1f} us)", to_string(key.signature),
            size(), choice.algorithm->name, plan->schedule().steps.size(), choice.problem.segment_bytes,
            choice.cost_us);
  for (int peer : plan->peers()) TUTTI_RETURN_IF_ERROR(context_.connect(peer, timeout_us_));
  return plan;
}

// Throws out the plan that was not used for longest, when there are too many.
void Group::make_room_for_plan() {
  if (plans_.size() < kMostPlans) return;
  auto oldest = plans_.end();
  for (auto it = plans_.begin(); it != plans_.end(); ++it)
    if (it->second->works_out == 0 && (oldest == plans_.end() || it->second->last_use < oldest->second->last_use))
      oldest = it;
  if (oldest == plans_.end()) return;
  std::ranges::replace(last_plans_, oldest->second.get(), nullptr);
  for (const auto& work : oldest->second->idle_works()) context_.retire(*work);
  plans_.erase(oldest);
}

void Group::drop_plans() {
  last_plans_ = {};
  for (const auto& [key, plan] : plans_)
    for (const auto& work : plan->idle_works()) context_.retire(*work);
  plans_.clear();
}

Result<Work*> Group::acquire(Plan& plan) {
  if (plan.idle_works().empty()) {
    auto made = context_.make_work(plan, *this);
    if (!made) return made.status();
    plan.idle_works().push_back(std::move(made.value()));
  }
  Work* work = plan.idle_works().back().release();
  plan.idle_works().pop_back();
  ++plan.works_out;
  ++works_out_;
  return work;
}

void Group::recycle(Work& work) {
  --work.plan().works_out;
  --works_out_;
  work.plan().idle_works().emplace_back(&work);
}

Result<Work*> Group::compare_before(Work& main) {
  const PlanKey key{{Operation::all_gather, DataType::uint8, ReduceOp::sum, -1, sizeof(WireSignature)}};
  main.comparison.resize((static_cast<size_t>(size()) + 1) * sizeof(WireSignature));
  const Signature& s = main.plan().key().signature;
  const WireSignature own{s.count,
                          s.root,
                          static_cast<uint8_t>(s.operation),
                          static_cast<uint8_t>(s.type),
                          static_cast<uint8_t>(s.op),
                          0,
                          main.sequence};
  std::memcpy(main.comparison.data(), &own, sizeof own);
  Buffers buffers;
  buffers.base[0] = main.comparison.data();
  buffers.base[1] = main.comparison.data() + sizeof own;
  auto prepared = prepare(key, buffers, main.match_base | kComparison, main.timeout_us);
  if (!prepared) {
    recycle(main);
    return prepared;
  }
  Work& comparison = **prepared;
  comparison.sequence = main.sequence;
  comparison.then = &main;
  return &comparison;
}

void Group::ended(Work& work) {
  Work* main = work.then;
  if (!main) return;
  const Status same = compare(*main);
  recycle(work);
  if (same.ok()) return context_.engine().start(*main);
  main->status = same;
  main->done = true;
  fail(same, true);
}

// The ranks' signatures side by side; an error shows the first two that differ.
Status Group::compare(const Work& main) const {
  std::vector<WireSignature> all(static_cast<size_t>(size()) + 1);
  std::memcpy(all.data(), main.comparison.data(), main.comparison.size());
  for (int r = 1; r < size(); ++r) {
    const WireSignature &first = all[1], &other = all[r + 1];
    if (std::memcmp(&first, &other, sizeof first) == 0) continue;
    return Status(Code::mismatch, fmt::format("operation #{} of the group: rank {} called {} and rank {} called {}",
                                              main.sequence, membership_.world_ranks[0], to_string(from_wire(first)),
                                              membership_.world_ranks[r], to_string(from_wire(other))));
  }
  return {};
}

void Group::fail(const Status& status, bool announce) {
  if (!failure_.ok()) return;
  failure_ = status;
  context_.give_up(*this, announce);
}

bool Group::is_running() const {
  return std::ranges::any_of(context_.engine().running(), [&](const Work* work) { return &work->group() == this; });
}

bool Group::has_rank(int world_rank) const {
  return std::ranges::find(membership_.world_ranks, world_rank) != membership_.world_ranks.end();
}

bool Group::descends_from(uint64_t channel) const {
  return membership_.channel == channel ||
         std::ranges::find(membership_.ancestors, channel) != membership_.ancestors.end();
}

std::string Group::history() const {
  std::string text;
  const uint32_t known = std::min<uint32_t>(sequence_, kHistory);
  for (uint32_t i = sequence_ - known; i != sequence_; ++i)
    text += fmt::format("{}#{} {}", text.empty() ? "" : ", ", i, to_string(history_[i % kHistory]));
  return text.empty() ? "none" : text;
}

}  // namespace tutti::internal
