#include "src/core/group.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "algo/kernels/kernels.h"
#include "algo/pieces.h"
#include "algo/selector.h"
#include "algo/ways.h"
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

// Whether the memory of the operation has a block for each rank, in the ranks' order, or two ends of their own.
bool has_blocks(Operation operation) {
  switch (operation) {
    case Operation::broadcast:
    case Operation::reduce:
    case Operation::all_reduce:
    case Operation::barrier: return false;
    default: return true;
  }
}

}  // namespace

Group::Group(Context& context, Membership membership, int64_t timeout_us)
    : context_(context),
      membership_(std::move(membership)),
      timeout_us_(timeout_us),
      sent_(membership_.world_ranks.size()),
      received_(membership_.world_ranks.size()) {
  seat_ranks();
}

Group::~Group() = default;

void Group::seat_ranks() {
  near_ranks_.resize(membership_.world_ranks.size());
  std::iota(near_ranks_.begin(), near_ranks_.end(), 0);
  const std::vector<int>& position = context_.near_position();
  std::ranges::stable_sort(near_ranks_, {}, [&](int rank) { return position[membership_.world_ranks[rank]]; });
  const auto layout_by = [&](const std::vector<int>& ranks) {
    std::vector<int> node_of;
    for (const int rank : ranks) node_of.push_back(context_.rank_map().node_of(membership_.world_ranks[rank]));
    return Layout(node_of);
  };
  near_layout_ = layout_by(near_ranks_);
  if (std::ranges::is_sorted(near_ranks_)) {
    layout_ = near_layout_;
    return near_ranks_.clear();
  }
  std::vector<int> by_rank(near_ranks_.size());
  std::iota(by_rank.begin(), by_rank.end(), 0);
  layout_ = layout_by(by_rank);
  near_places_.resize(near_ranks_.size());
  for (int place = 0; place < size(); ++place) near_places_[near_ranks_[place]] = place;
}

Status Group::start(const Call& call, Work*& work) {
  const Recent& recent = recent_[static_cast<size_t>(call.signature.operation)];
  if (!recent.plan || recent.call != call) return start_other(call, work);
  return begin(call, recent.buffers, *recent.plan, work);
}

Status Group::start_other(const Call& call, Work*& work) {
  Buffers buffers;
  Plan* plan = nullptr;
  Status status = resolve(call, buffers, plan);
  if (!status.ok()) {
    if (status.code() != Code::invalid_argument) fail(status, true);
    return status;
  }
  if (!call.input.is_list && !call.output.is_list)
    recent_[static_cast<size_t>(call.signature.operation)] = {call, buffers, plan};
  return begin(call, buffers, *plan, work);
}

Status Group::resolve(Call call, Buffers& buffers, Plan*& plan) {
  bool in_place = false;
  TUTTI_RETURN_IF_ERROR(check_call(call, rank(), size(), in_place));
  if (!failure_.ok()) return failure_;
  buffers = {{call.input.buffer(), call.output.buffer(), nullptr}, {call.input.pieces(), call.output.pieces()}};
  return plan_for({call.signature, call.peer, in_place, call.input.is_list, call.output.is_list, call.alias},
                  call.timeout_us, plan);
}

// From here on the operation takes place: its number is used up.
Status Group::begin(const Call& call, const Buffers& buffers, Plan& plan, Work*& work) {
  if (!failure_.ok()) return failure_;
  Status status = acquire(plan, buffers, call.timeout_us ? call.timeout_us : timeout_us_, work);
  if (status.ok()) {
    work->match_base = next_match_base(call);
    work->sequence = static_cast<uint32_t>(work->match_base >> 32);
    if (!context_.config().check() || size() == 1 || is_pairwise(call.signature.operation)) {
      context_.engine().start(*work);
      return {};
    }
    status = start_comparison(*work);
  }
  if (!status.ok()) fail(status, true);
  return status;
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

Status Group::plan_for(const PlanKey& key, int64_t timeout_us, Plan*& plan) {
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    auto made = make_plan(key, Deadline::after_us(timeout_us ? timeout_us : timeout_us_));
    if (!made) return made.status();
    make_room_for_plan();
    found = plans_.emplace(key, std::move(made.value())).first;
  }
  plan = found->second.get();
  return {};
}

Choice Group::choice_for(Operation operation, uint64_t count, DataType type) const {
  Problem problem = problem_of({{operation, type, ReduceOp::sum, 0, count}}, rank(), size());
  problem.layout = &layout_;
  return context_.choose(problem);
}

// The schedule's ranks are the group's, or, where neighbours do not follow each other, those stand-ins: then a subtree
// of the schedule is a part of the machine.
Result<std::unique_ptr<Plan>> Group::make_plan(const PlanKey& key, Deadline deadline) {
  Problem problem = problem_of(key, rank(), size());
  problem.layout = &layout_;
  std::vector<int> world_ranks = membership_.world_ranks;
  if (!near_ranks_.empty() && !has_blocks(problem.operation)) {
    problem.rank = near_places_[problem.rank];
    problem.root = near_places_[problem.root];
    problem.layout = &near_layout_;
    for (int place = 0; place < size(); ++place) world_ranks[place] = membership_.world_ranks[near_ranks_[place]];
  }
  const Choice choice = context_.choose(problem);
  Schedule schedule = build(choice);
  const uint64_t piece_bytes = choice.problem.bytes();
  if (key.input_is_list || key.output_is_list)
    schedule = split_pieces(schedule, key.input_is_list ? piece_bytes : 0, key.output_is_list ? piece_bytes : 0);
  std::vector<int> ways;
  for (const int world_rank : world_ranks) ways.push_back(context_.transport().way_to(world_rank));
  if (std::ranges::adjacent_find(ways, std::not_equal_to()) != ways.end()) schedule = split_ways(schedule, ways);
  Reduction reduction;
  if (is_reducing(key.signature.operation)) {
    reduction.kernel = kernel_for(key.signature.type, key.signature.op);
    reduction.element_bytes = choice.problem.element_bytes;
    if (key.signature.op == ReduceOp::average) reduction.divisor = static_cast<uint32_t>(size());
  }
  auto plan =
      std::make_unique<Plan>(key, std::move(schedule), choice.algorithm->name, world_ranks, reduction, piece_bytes);
  log_debug("{} on {} ranks: {} ({} steps, segments of {} bytes, predicted {:.1f} us)", to_string(key.signature),
            size(), choice.algorithm->name, plan->schedule().steps.size(), choice.problem.segment_bytes,
            choice.cost_us);
  for (int peer : plan->peers()) TUTTI_RETURN_IF_ERROR(context_.connect(peer, deadline, *this));
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
  for (Recent& recent : recent_)
    if (recent.plan == oldest->second.get()) recent.plan = nullptr;
  for (const auto& work : oldest->second->idle_works()) context_.retire(*work);
  plans_.erase(oldest);
}

void Group::drop_plans() {
  recent_ = {};
  for (const auto& [key, plan] : plans_)
    for (const auto& work : plan->idle_works()) context_.retire(*work);
  plans_.clear();
}

Status Group::acquire(Plan& plan, const Buffers& buffers, int64_t timeout_us, Work*& work) {
  if (plan.idle_works().empty()) TUTTI_RETURN_IF_ERROR(add_work(plan));
  work = plan.idle_works().back().release();
  plan.idle_works().pop_back();
  ++plan.works_out;
  plan.last_use = ++use_count_;
  work->reset(buffers, size());
  work->timeout_us = timeout_us;
  return {};
}

Status Group::add_work(Plan& plan) {
  auto made = context_.make_work(plan, *this);
  if (!made) return made.status();
  plan.idle_works().push_back(std::move(made.value()));
  return {};
}

void Group::recycle(Work& work) {
  --work.plan().works_out;
  work.plan().idle_works().emplace_back(&work);
}

Status Group::start_comparison(Work& main) {
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
  const Buffers buffers{{main.comparison.data(), main.comparison.data() + sizeof own, nullptr}, {}};
  Work* comparison = nullptr;
  Plan* plan = nullptr;
  Status status = plan_for(key, main.timeout_us, plan);
  if (status.ok()) status = acquire(*plan, buffers, main.timeout_us, comparison);
  if (!status.ok()) {
    recycle(main);
    return status;
  }
  comparison->match_base = main.match_base | kComparison;
  comparison->sequence = main.sequence;
  comparison->then = &main;
  context_.engine().start(*comparison);
  return {};
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
