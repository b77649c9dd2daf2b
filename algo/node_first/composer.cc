// See composer.h. Invariant: what a rank does depends on its place only; the order of parts is the same for all.
#include "algo/node_first/composer.h"

#include <algorithm>
#include <string_view>

#include "algo/node_first/node_first.h"

namespace tutti::internal::node_first {
namespace {

const Algorithm* linear(Operation operation) {
  for (const Algorithm& algorithm : algorithms(operation))
    if (std::string_view(algorithm.name) == "linear") return &algorithm;
  return nullptr;
}

}  // namespace

bool fits(const Problem& problem) { return problem.layout != nullptr && problem.layout->has_two_levels(); }

Composer::Composer(Builder& builder, size_t segments_in_flight)
    : builder_(builder),
      problem_(builder.problem()),
      layout_(*problem_.layout),
      here_(layout_.node_of(problem_.rank)),
      in_flight_(segments_in_flight) {}

int Composer::rank_at(int node, int index) const {
  const int first = is_rooted(problem_.operation) && node == root_node() ? layout_.local_rank(problem_.root) : 0;
  return layout_.ranks_of(node)[static_cast<size_t>((first + index) % layout_.ranks_on(node))];
}

std::vector<int> Composer::owners(int lane) const {
  std::vector<int> ranks;
  for (int node = 0; node < node_count(); ++node) ranks.push_back(owner(node, lane));
  return ranks;
}

int Composer::carried(int node, int lane, int index) const {
  const int at = lane + index * lanes();
  return at < layout_.ranks_on(node) ? rank_at(node, at) : -1;
}

void Composer::next_segment() {
  Segment& segment = in_flight_[segments_ % in_flight_.size()];
  if (segments_ < in_flight_.size())
    segment.mark = builder_.scratch_mark();
  else
    builder_.rewind_scratch(segment.mark);
  after_ = segment.last_steps;
  ++segments_;
}

void Composer::run(Side side, const Part& part, const Stage& stage) {
  const auto self = std::ranges::find(part.members, problem_.rank);
  if (self == part.members.end()) return;
  Scope scope;
  scope.problem.operation = part.operation;
  scope.problem.rank = static_cast<int>(self - part.members.begin());
  scope.problem.size = static_cast<int>(part.members.size());
  scope.problem.root = part.root;
  scope.problem.count = part.bytes / problem_.element_bytes;
  scope.problem.element_bytes = problem_.element_bytes;
  scope.problem.segment_bytes = stage.segment_bytes;
  scope.problem.radix = stage.radix;
  scope.members = part.members;
  scope.input = part.input;
  scope.output = part.output;
  scope.finish = part.finish;
  scope.after = {after_[static_cast<size_t>(side)]};
  const StepId last = builder_.within(scope, stage.algorithm->build);
  Segment& segment = in_flight_[(segments_ - 1) % in_flight_.size()];
  if (last != kNoStep) segment.last_steps[static_cast<size_t>(side)] = last;
}

void Composer::run(Side side, const Part& part) {
  const Composition& stages = problem_.composition;
  run(side, part, side == Side::in ? stages.in : side == Side::across ? stages.across : stages.out);
}

void Composer::run_linear(Side side, const Part& part) { run(side, part, {.algorithm = linear(part.operation)}); }

void Composer::move(Side side, int from, int to, const std::vector<Slice>& source, const std::vector<Slice>& slice) {
  const bool is_source = problem_.rank == from;
  if (!is_source && problem_.rank != to) return;
  uint64_t bytes = 0;
  for (const Slice& piece : is_source ? source : slice) bytes += piece.bytes;
  if (from != to)
    return run_linear(side, {.operation = Operation::broadcast,
                             .members = {from, to},
                             .bytes = bytes,
                             .input = {},
                             .output = is_source ? source : slice});
  Part alone{.operation = Operation::gather, .members = {from}, .bytes = bytes, .input = source, .output = slice};
  run_linear(side, alone);
}

Slice Composer::reduce_inside(int lane, Slice own) {
  if (is_alone()) return own;
  const int to = owner(here_, lane);
  const Slice result = to == problem_.rank ? builder_.scratch(own.bytes) : Slice{};
  run(Side::in, {.operation = Operation::reduce,
                 .members = inside(),
                 .root = layout_.local_rank(to),
                 .bytes = own.bytes,
                 .input = {own},
                 .output = {result},
                 .finish = Finish::no});
  return result;
}

void Composer::broadcast_inside(Side side, int root, Slice slice) {
  run(side, {.operation = Operation::broadcast,
             .members = inside(),
             .root = layout_.local_rank(root),
             .bytes = slice.bytes,
             .input = {slice},
             .output = {slice}});
}

std::vector<std::vector<Range>> lane_pieces(const Problem& problem) {
  const int lanes = problem.composition.lanes;
  std::vector<std::vector<Range>> pieces;
  for (int lane = 0; lane < lanes; ++lane)
    pieces.push_back(segments(part(problem.bytes(), lanes, lane), problem.segment_bytes));
  return pieces;
}

size_t most_pieces(const std::vector<std::vector<Range>>& pieces) {
  size_t most = 0;
  for (const auto& of_lane : pieces) most = std::max(most, of_lane.size());
  return most;
}

}  // namespace tutti::internal::node_first
