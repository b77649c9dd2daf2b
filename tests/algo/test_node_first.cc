// Node-first algorithms, proved: rank counts and layouts of all kinds, every root, sizes around each boundary, in place
// and not, every number of lanes, in segments and not, each stage by each algorithm that it may take.
//
// A case is a seeded sample of the many combinations; the seed is in the name of what fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "algo/layout.h"
#include "algo/partition.h"
#include "algo/pieces.h"
#include "algo/selector.h"
#include "algo/verifier.h"
#include "tests/algo/proof_helpers.h"

namespace tutti::internal {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLargestSize = 24;
#else
constexpr int kLargestSize = 64;
#endif
constexpr uint64_t kSegment = 128;  // forced, so that few bytes make many segments

// Which node each rank is on.
using NodeOf = std::vector<int>;

// {3, 1}: three ranks on one node, one on the next.
NodeOf blocked(const std::vector<int>& ranks_on) {
  NodeOf node_of;
  for (size_t node = 0; node < ranks_on.size(); ++node)
    node_of.insert(node_of.end(), static_cast<size_t>(ranks_on[node]), static_cast<int>(node));
  return node_of;
}

// Layouts of `size` ranks that have an inside and an outside.
std::vector<NodeOf> layouts_of(int size, std::mt19937_64& random) {
  std::set<NodeOf> found;
  const auto add = [&](const NodeOf& node_of) {
    if (Layout(node_of).has_two_levels()) found.insert(node_of);
  };
  for (int nodes = 2; nodes < size; ++nodes) {
    if (nodes > 4 && size % nodes != 0) continue;
    NodeOf even, dealt;
    for (int rank = 0; rank < size; ++rank) {
      even.push_back(rank * nodes / size);
      dealt.push_back(rank % nodes);
    }
    add(even);
    add(dealt);
  }
  for (const int large : {2, size / 2, size - 1}) {  // one large node and single ranks, at either end
    NodeOf node_of(static_cast<size_t>(size));
    std::iota(node_of.begin(), node_of.end(), 0);
    std::fill_n(node_of.begin(), std::clamp(large, 1, size), 0);
    add(node_of);
    std::reverse(node_of.begin(), node_of.end());
    add(node_of);
  }
  if (size > 3) add(blocked({2, 1, size - 3}));
  for (int i = 0; i < 2; ++i) {  // without any order
    NodeOf node_of;
    for (int rank = 0; rank < size; ++rank) node_of.push_back(static_cast<int>(random() % 4));
    add(node_of);
  }
  return {found.begin(), found.end()};
}

const Algorithm& node_first(Operation operation) {
  const auto all = algorithms(operation);
  return *std::find_if(all.begin(), all.end(), [](const Algorithm& a) { return a.compose != nullptr; });
}

// Any flat algorithm of an operation, with any radix and segment.
Stage any_stage(Operation operation, std::mt19937_64& random) {
  std::vector<const Algorithm*> flat;
  for (const Algorithm& algorithm : algorithms(operation))
    if (algorithm.compose == nullptr) flat.push_back(&algorithm);
  return {flat[random() % flat.size()], random() % 2 == 0 ? kSegment : 0, 2 + static_cast<int>(random() % 7)};
}

// What the stages of an operation do, as its builder has it.
struct StageOperations {
  Operation in, across, out;
};
StageOperations stages_of(Operation operation, int lanes) {
  using enum Operation;
  switch (operation) {
    case all_reduce: return {reduce, all_reduce, broadcast};
    case all_gather: return {lanes == 1 ? gather : all_gather, all_gather, broadcast};
    case reduce_scatter: return {reduce, reduce_scatter, scatter};
    case reduce: return {reduce, reduce, reduce};
    default: return {operation, operation, operation};
  }
}

struct Sample {
  NodeOf node_of;
  Problem problem;
  InPlace in_place = InPlace::none;
};

std::string text_of(const Stage& stage) {
  return std::string(stage.algorithm == nullptr ? "none" : stage.algorithm->name) + "/" +
         std::to_string(stage.segment_bytes) + "/" + std::to_string(stage.radix);
}

void expect_proved(const Algorithm& algorithm, Sample sample, std::mt19937_64& random) {
  const Layout layout(sample.node_of);
  sample.problem.layout = &layout;
  const auto in_place = ranks_in_place(sample.problem.size, sample.in_place, random);
  const Status status = prove(algorithm, sample.problem, in_place);
  const Composition& stages = sample.problem.composition;
  ASSERT_TRUE(status.ok()) << text_of(algorithm, sample.problem) << " lanes " << stages.lanes << " nodes "
                           << testing::PrintToString(sample.node_of) << " stages " << text_of(stages.in) << ' '
                           << text_of(stages.across) << ' ' << text_of(stages.out) << " in place "
                           << testing::PrintToString(in_place) << ": " << status.message();
}

std::vector<uint64_t> counts_for(Operation operation, int size, int lanes, uint32_t element_bytes) {
  if (operation == Operation::barrier) return {0};
  const uint64_t line = 64 / element_bytes, segment = kSegment / element_bytes;
  std::vector<uint64_t> counts{0, 1, static_cast<uint64_t>(size), line, segment - 1, segment, segment + 1};
  counts.push_back(5 * segment + 1);
  if (operation == Operation::all_reduce || operation == Operation::reduce || operation == Operation::broadcast)
    for (const uint64_t length : {line, segment, 6 * segment})
      for (const uint64_t more : {0, 1}) counts.push_back(static_cast<uint64_t>(lanes) * length + more);
  return counts;
}

// Stages for a number of lanes: any that can do them.
Composition any_composition(Operation operation, int lanes, std::mt19937_64& random) {
  const StageOperations stages = stages_of(operation, lanes);
  return {lanes, any_stage(stages.in, random), any_stage(stages.across, random), any_stage(stages.out, random)};
}

Sample any_sample(Operation operation, const NodeOf& node_of, int root, std::mt19937_64& random) {
  const auto pick = [&](const auto& from) { return from[random() % from.size()]; };
  Sample sample{node_of, {.operation = operation, .size = static_cast<int>(node_of.size()), .root = root}};
  Problem& problem = sample.problem;
  const int lanes = 1 + static_cast<int>(random() % static_cast<uint64_t>(Layout(node_of).most()));
  problem.composition = any_composition(operation, lanes, random);
  problem.element_bytes = pick(std::vector<uint32_t>{4, 1});
  problem.count = pick(counts_for(operation, problem.size, lanes, problem.element_bytes));
  problem.segment_bytes = pick(std::vector<uint64_t>{kSegment, 0});
  sample.in_place = pick(std::vector<InPlace>{InPlace::none, InPlace::all, InPlace::mixed});
  return sample;
}

class NodeFirst : public testing::TestWithParam<Operation> {
 protected:
  const Algorithm& algorithm_ = node_first(GetParam());
};

// All but the stages, which are drawn.
TEST_P(NodeFirst, FewestRanksEveryCombination) {
  const bool rooted = is_rooted(GetParam());
  for (int size = 3; size <= (rooted ? 5 : 6); ++size) {
    std::mt19937_64 random(static_cast<uint64_t>(size));
    for (const NodeOf& node_of : layouts_of(size, random))
      for (int root = 0; root < (rooted ? size : 1); ++root)
        for (int lanes = 1; lanes <= Layout(node_of).most(); ++lanes)
          for (const uint32_t element_bytes : {4U, 1U})
            for (const uint64_t count : counts_for(GetParam(), size, lanes, element_bytes))
              for (const uint64_t segment : {kSegment, uint64_t{0}})
                for (const InPlace in_place : {InPlace::none, InPlace::all, InPlace::mixed}) {
                  Sample sample{node_of, {.operation = GetParam(), .size = size, .root = root}, in_place};
                  sample.problem.count = count;
                  sample.problem.element_bytes = element_bytes;
                  sample.problem.segment_bytes = segment;
                  sample.problem.composition = any_composition(GetParam(), lanes, random);
                  ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm_, sample, random));
                }
  }
}

TEST_P(NodeFirst, FewRanksEveryLayoutAndRoot) {
  const bool rooted = is_rooted(GetParam());
  for (int size = 3; size <= 16; ++size) {
    std::mt19937_64 random(static_cast<uint64_t>(size));
    for (const NodeOf& node_of : layouts_of(size, random))
      for (int root = 0; root < (rooted ? size : 1); ++root)
        for (int i = 0; i < (rooted ? 3 : 20); ++i)
          ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm_, any_sample(GetParam(), node_of, root, random), random));
  }
}

TEST_P(NodeFirst, MoreRanks) {
  for (int size = 17; size <= kLargestSize; size += size < 24 ? 1 : 5) {
    std::mt19937_64 random(static_cast<uint64_t>(size));
    for (const NodeOf& node_of : layouts_of(size, random)) {
      const int root = static_cast<int>(random() % static_cast<uint64_t>(size));
      ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm_, any_sample(GetParam(), node_of, root, random), random));
    }
  }
}

// Where each rank holds a block of each, what is proved grows with the square of the ranks.
TEST_P(NodeFirst, ManyRanks) {
  const bool in_squares = GetParam() == Operation::all_gather || GetParam() == Operation::reduce_scatter ||
                          GetParam() == Operation::all_to_all;
  const std::vector<int> clusters[] = {
      std::vector<int>(16, 8), {64, 1, 30, 7}, std::vector<int>(125, 8), {700, 299, 1}};
  for (const auto& ranks_on : clusters) {
    const NodeOf node_of = blocked(ranks_on);
    const auto size = static_cast<int>(node_of.size());
    if (in_squares && size > 128) break;
    std::mt19937_64 random(static_cast<uint64_t>(size));
    for (int i = 0; i < 3; ++i) {
      const int root = static_cast<int>(random() % static_cast<uint64_t>(size));
      Sample sample = any_sample(GetParam(), node_of, root, random);
      sample.problem.composition = any_composition(GetParam(), std::min(1 << (3 * i), Layout(node_of).most()), random);
      sample.problem.count = GetParam() == Operation::barrier ? 0 : 70;
      sample.problem.segment_bytes = i == 1 ? kSegment : 0;
      ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm_, sample, random));
    }
  }
}

// As the selector would really call it, and with more bytes than 32 bits can count.
TEST_P(NodeFirst, AsComposed) {
  std::mt19937_64 random(1);
  for (const NodeOf& node_of : {blocked({2, 2}), blocked({4, 4}), blocked({2, 1, 4}), NodeOf{0, 1, 0, 1, 0}})
    for (const uint64_t count :
         {uint64_t{8}, uint64_t{2000}, uint64_t{100000}, (uint64_t{1} << 25) + 3, (uint64_t{1} << 32) + 3}) {
      Sample sample{node_of, {}, InPlace::mixed};
      const Layout layout(node_of);
      sample.problem = {.operation = GetParam(), .size = layout.rank_count(), .root = 1};
      sample.problem.count = GetParam() == Operation::barrier ? 0 : count;
      sample.problem.layout = &layout;
      const Costs costs(kSharedMemory, kRdma);
      EXPECT_GT(algorithm_.compose(sample.problem, costs), 0);
      ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm_, sample, random));
    }
}

// No pair exchanges too many messages, also where a whole proof would take too long.
TEST_P(NodeFirst, MessagesOfAPairAreBounded) {
  for (const auto& ranks_on : {std::vector<int>{2, 2}, std::vector<int>{1, 7, 8}, std::vector<int>(16, 16)}) {
    const Layout layout(blocked(ranks_on));
    const int size = layout.rank_count();
    Problem problem{.operation = GetParam(), .rank = size / 2, .size = size, .layout = &layout};
    problem.count = GetParam() == Operation::barrier ? 0 : (uint64_t{1} << 41) / static_cast<uint64_t>(size);
    const Schedule schedule = build(priced(algorithm_, problem, {kSharedMemory, kRdma}));
    std::vector<uint64_t> sent(static_cast<size_t>(size));
    for (const Step& step : schedule.steps)
      for (const int32_t peer : schedule.peers_of(step))
        if (step.kind == StepKind::send) ++sent[static_cast<size_t>(peer)];
    EXPECT_LE(*std::max_element(sent.begin(), sent.end()), kMaxMessagesPerPair) << "size " << size;
  }
}

std::vector<Schedule> schedules_of(const Algorithm& algorithm, Problem problem) {
  std::vector<Schedule> schedules;
  for (problem.rank = 0; problem.rank < problem.size; ++problem.rank) schedules.push_back(build({&algorithm, problem}));
  return schedules;
}

// A step that mixed them would need two transports.
TEST_P(NodeFirst, NoStepHasPeersInsideAndAcross) {
  std::mt19937_64 random(1);
  for (const NodeOf& node_of : {blocked({4, 4}), blocked({2, 1, 4}), NodeOf{0, 1, 0, 1, 0}, blocked({5, 5, 5, 1})})
    for (int i = 0; i < 20; ++i) {
      const Layout layout(node_of);
      Sample sample = any_sample(GetParam(), node_of, layout.rank_count() / 2, random);
      sample.problem.layout = &layout;
      const auto schedules = schedules_of(algorithm_, sample.problem);
      for (int rank = 0; rank < layout.rank_count(); ++rank) {
        const Schedule& schedule = schedules[static_cast<size_t>(rank)];
        for (size_t id = 0; id < schedule.steps.size(); ++id) {
          std::set<bool> sides;
          for (const int32_t peer : schedule.peers_of(schedule.steps[id]))
            sides.insert(layout.node_of(peer) == layout.node_of(rank));
          for (const Operand& operand : schedule.operands_of(schedule.steps[id]))
            if (operand.peer != Operand::kLocal) sides.insert(layout.node_of(operand.peer) == layout.node_of(rank));
          ASSERT_LE(sides.size(), 1U) << "rank " << rank << ' ' << to_text(schedule, static_cast<StepId>(id));
        }
      }
    }
}

// The forms with a list of blocks, each rank by itself.
TEST_P(NodeFirst, ListsAreProved) {
  std::mt19937_64 random(1);
  for (const NodeOf& node_of : {blocked({3, 3}), blocked({2, 1, 4}), NodeOf{0, 1, 0, 1, 0, 1}})
    for (int i = 0; i < 60; ++i) {
      const Layout layout(node_of);
      const int size = layout.rank_count();
      const auto root = static_cast<int>(random() % static_cast<uint64_t>(size));
      Sample sample = any_sample(GetParam(), node_of, root, random);
      sample.problem.layout = &layout;
      std::vector<Problem> problems(static_cast<size_t>(size), sample.problem);
      std::vector<Schedule> schedules;
      const uint64_t all = static_cast<uint64_t>(size) * sample.problem.bytes();
      for (int rank = 0; rank < size; ++rank) {
        Problem& problem = problems[static_cast<size_t>(rank)];
        problem.rank = rank;
        problem.in_place = random() % 2 == 0;
        const auto piece = [&](uint64_t bytes) { return bytes == all && random() % 2 == 0 ? problem.bytes() : 0; };
        const uint64_t input_piece = piece(input_bytes(problem)), output_piece = piece(output_bytes(problem));
        schedules.push_back(split_pieces(build({&algorithm_, problem}), input_piece, output_piece));
      }
      const Status status = verify(problems, schedules);
      ASSERT_TRUE(status.ok()) << text_of(algorithm_, sample.problem) << ": " << status.message();
    }
}

INSTANTIATE_TEST_SUITE_P(All, NodeFirst,
                         testing::Values(Operation::barrier, Operation::broadcast, Operation::reduce,
                                         Operation::all_reduce, Operation::reduce_scatter, Operation::scatter,
                                         Operation::gather, Operation::all_gather, Operation::all_to_all),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

// Bytes that a rank takes from other nodes, or from its own.
uint64_t bytes_taken(const Schedule& schedule, const Layout& layout, int rank, bool across) {
  uint64_t bytes = 0;
  const auto add = [&](int32_t peer, const Slice& slice) {
    if ((layout.node_of(peer) != layout.node_of(rank)) == across) bytes += slice.bytes;
  };
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::recv) add(schedule.peers_of(step)[0], step.slice);
    for (const Operand& operand : schedule.operands_of(step))
      if (operand.peer != Operand::kLocal) add(operand.peer, step.slice);
  }
  return bytes;
}

// What DESIGN asks of long messages: every local rank carries its slice across.
TEST(NodeFirstLanes, EachCarriesItsShare) {
  const Layout layout(blocked({4, 4}));
  constexpr uint64_t kBytes = 16 << 20;
  for (const Operation operation : {Operation::all_reduce, Operation::broadcast, Operation::reduce}) {
    Problem problem{.operation = operation, .size = 8, .count = kBytes, .layout = &layout};
    problem = priced(node_first(operation), problem, {kSharedMemory, kRdma}).problem;
    EXPECT_EQ(problem.composition.lanes, 4) << name(operation);
    const auto schedules = schedules_of(node_first(operation), problem);
    for (int rank = 0; rank < 8; ++rank) {
      const bool at_root = rank < 4;
      const uint64_t expected = operation == Operation::all_reduce            ? kBytes / 4
                                : (operation == Operation::reduce) == at_root ? kBytes / 4
                                                                              : 0;
      EXPECT_EQ(bytes_taken(schedules[static_cast<size_t>(rank)], layout, rank, true), expected)
          << name(operation) << " rank " << rank;
    }
  }
}

// Of three even nodes, no block crosses twice into the same one.
TEST(NodeFirstLanes, BlocksCrossOnce) {
  const Layout layout(NodeOf{0, 1, 2, 0, 1, 2});
  for (const Operation operation : {Operation::all_gather, Operation::reduce_scatter, Operation::all_to_all})
    for (const uint64_t bytes : {8, 1 << 18}) {
      Problem problem{.operation = operation, .size = 6, .count = bytes, .layout = &layout};
      problem = priced(node_first(operation), problem, {kSharedMemory, kRdma}).problem;
      const auto schedules = schedules_of(node_first(operation), problem);
      uint64_t across = 0;
      for (int rank = 0; rank < 6; ++rank)
        across += bytes_taken(schedules[static_cast<size_t>(rank)], layout, rank, true);
      // all_to_all: 4 blocks for each rank from elsewhere; the others: each block, or sum of a node, into 2 nodes.
      EXPECT_EQ(across, (operation == Operation::all_to_all ? 24 : 12) * bytes) << name(operation);
    }
}

// Inside works on a later segment while an earlier one is still across.
TEST(NodeFirstLanes, SegmentsOverlap) {
  const Layout layout(blocked({2, 2}));
  Problem problem{
      .operation = Operation::all_reduce, .size = 4, .count = 1024, .segment_bytes = 128, .layout = &layout};
  const auto flat_one = [](Operation operation) { return Stage{&algorithms(operation)[0]}; };
  problem.composition = {2, flat_one(Operation::reduce), flat_one(Operation::all_reduce),
                         flat_one(Operation::broadcast)};
  const Schedule schedule = build({&node_first(Operation::all_reduce), problem});
  // Steps that wait, directly or through others, for what comes from across.
  std::vector<bool> late(schedule.steps.size());
  size_t early_reductions = 0;
  for (size_t id = 0; id < schedule.steps.size(); ++id) {
    const Step& step = schedule.steps[id];
    bool inside = false;
    for (const Operand& operand : schedule.operands_of(step)) {
      if (operand.peer == 1) inside = true;
      if (operand.peer == 2) late[id] = true;
    }
    if (inside && !late[id]) ++early_reductions;
    if (late[id])
      for (const uint32_t successor : schedule.successors_of(step)) late[successor] = true;
  }
  EXPECT_EQ(early_reductions, 4U) << to_text(schedule);  // all segments of rank 0's lane, 512 bytes
}

// Were all segments offered at once, a transport would have to hold them all.
TEST(NodeFirstLanes, SegmentsInFlightAreBounded) {
  const Layout layout(blocked({2, 2}));
  for (const Operation operation : {Operation::broadcast, Operation::all_reduce, Operation::all_gather}) {
    Problem problem{.operation = operation, .size = 4, .count = 64 * 64, .segment_bytes = 64, .layout = &layout};
    std::mt19937_64 random(1);
    problem.composition = any_composition(operation, 1, random);
    for (Stage* stage : {&problem.composition.in, &problem.composition.across, &problem.composition.out}) {
      stage->algorithm = &algorithms(stage->algorithm->operation)[0];
      stage->segment_bytes = 0;
    }
    for (const Schedule& schedule : schedules_of(node_first(operation), problem)) {
      const auto at_once = std::count_if(schedule.steps.begin(), schedule.steps.end(),
                                         [](const Step& step) { return step.dependency_count == 0; });
      EXPECT_LE(at_once, 3 * 8) << name(operation) << '\n' << to_text(schedule);  // of each stage, 8 segments
    }
  }
}

// The large node's ranks share what goes to the single ones.
TEST(NodeFirstLanes, CarriersTakeTurns) {
  const Layout layout(blocked({4, 1, 1, 1, 1}));
  const Problem problem{.operation = Operation::all_to_all, .size = 8, .count = 8, .layout = &layout};
  const Algorithm& algorithm = node_first(Operation::all_to_all);
  const auto schedules = schedules_of(algorithm, priced(algorithm, problem, {kSharedMemory, kRdma}).problem);
  for (int rank = 0; rank < 4; ++rank) {
    uint64_t sent = 0;
    const Schedule& schedule = schedules[static_cast<size_t>(rank)];
    for (const Step& step : schedule.steps)
      if (step.kind == StepKind::send && schedule.peers_of(step)[0] >= 4) sent += step.slice.bytes;
    EXPECT_EQ(sent, 4U * 8U) << rank;
  }
}

}  // namespace
}  // namespace tutti::internal
