// See rank_check.h. Pure functions.
#include "algo/proof/rank_check.h"

#include <deque>
#include <vector>

#include "algo/hazards.h"
#include "algo/layout.h"
#include "algo/partition.h"
#include "algo/proof/fault.h"
#include "src/base/kernel.h"

namespace tutti::internal::proof {
namespace {

bool overlap(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

class RankCheck {
 public:
  RankCheck(const Problem& problem, const Schedule& schedule) : problem_(problem), schedule_(schedule) {
    const Aliasing shared = aliasing(problem);
    using enum Aliasing::Kind;
    bytes_[0] = shared.kind == input_in_output ? 0 : input_bytes(problem);
    bytes_[1] = shared.kind == output_in_input ? 0 : output_bytes(problem);
    bytes_[2] = schedule.scratch_bytes;
    if (shared.kind == output_in_input) writable_input_ = {shared.offset, output_bytes(problem)};
    output_is_read_only_ = problem.operation == Operation::broadcast && problem.rank == problem.root;
  }

  Status run() {
    TUTTI_RETURN_IF_ERROR(check_graph());
    TUTTI_RETURN_IF_ERROR(check_scratch());
    for (size_t id = 0; id < schedule_.steps.size(); ++id) TUTTI_RETURN_IF_ERROR(check_step(id));
    return check_races();
  }

 private:
  Status wrong(size_t id, const std::string& what) const { return fault(problem_.rank, schedule_, id, what); }

  // Fills predecessors_.
  Status check_graph() {
    const size_t count = schedule_.steps.size();
    predecessors_.resize(count);
    seen_.resize(count);
    for (size_t id = 0; id < count; ++id)
      for (const uint32_t successor : schedule_.successors_of(schedule_.steps[id])) {
        if (successor <= id || successor >= count)
          return wrong(id, fmt::format("its successor {} is not a later step", successor));
        predecessors_[successor].push_back(static_cast<StepId>(id));
      }
    for (size_t id = 0; id < count; ++id)
      if (predecessors_[id].size() != schedule_.steps[id].dependency_count)
        return wrong(id, fmt::format("counts {} dependencies, and is named as successor {} times",
                                     schedule_.steps[id].dependency_count, predecessors_[id].size()));
    return {};
  }

  // Twice the longest buffer of any rank, and that for each level, inside nodes and across; and what it costs to begin
  // each piece of scratch on a cache line.
  Status check_scratch() const {
    const bool in_blocks = problem_.operation != Operation::broadcast && problem_.operation != Operation::reduce &&
                           problem_.operation != Operation::all_reduce && !is_pairwise(problem_.operation);
    const uint64_t longest = problem_.bytes() * (in_blocks ? static_cast<uint64_t>(problem_.size) : 1);
    const uint64_t levels = problem_.layout != nullptr && problem_.layout->has_two_levels() ? 2 : 1;
    const uint64_t most = 2 * levels * longest + 64 * schedule_.steps.size();
    if (schedule_.scratch_bytes <= most) return {};
    return {Code::internal, fmt::format("rank {}: asks for {} bytes of scratch, more than the {} allowed",
                                        problem_.rank, schedule_.scratch_bytes, most)};
  }

  Status check_step(size_t id) const {
    const Step& step = schedule_.steps[id];
    const auto peers = schedule_.peers_of(step);
    const auto operands = schedule_.operands_of(step);
    for (const int32_t peer : peers) TUTTI_RETURN_IF_ERROR(check_peer(id, peer));
    for (const Operand& operand : operands) {
      if (operand.peer != Operand::kLocal) {
        TUTTI_RETURN_IF_ERROR(check_peer(id, operand.peer));
        continue;
      }
      TUTTI_RETURN_IF_ERROR(check_readable(id, operand.slice));
      if (operand.slice.bytes != step.slice.bytes)
        return wrong(id, fmt::format("an operand has {} bytes, the result {}", operand.slice.bytes, step.slice.bytes));
      if (overlap(operand.slice, step.slice) && operand.slice != step.slice)
        return wrong(id, "an operand overlaps the result without being equal to it");
    }
    switch (step.kind) {
      case StepKind::send:
        if (peers.empty()) return wrong(id, "sends to nobody");
        return check_readable(id, step.slice);
      case StepKind::recv:
        if (peers.size() != 1) return wrong(id, fmt::format("takes from {} ranks, not from one", peers.size()));
        break;
      case StepKind::copy:
        TUTTI_RETURN_IF_ERROR(check_readable(id, step.source));
        if (step.source.bytes != step.slice.bytes) return wrong(id, "source and result differ in length");
        if (overlap(step.source, step.slice)) return wrong(id, "source and result overlap");
        break;
      case StepKind::reduce:
        if (operands.empty() || operands.size() > static_cast<size_t>(kMaxOperands))
          return wrong(id, fmt::format("has {} operands, allowed are 1 to {}", operands.size(), kMaxOperands));
        if (step.slice.bytes % problem_.element_bytes != 0)
          return wrong(id, fmt::format("result is no multiple of {} bytes", problem_.element_bytes));
        break;
    }
    return check_writable(id, step.slice);
  }

  Status check_peer(size_t id, int32_t peer) const {
    if (peer >= 0 && peer < problem_.size && peer != problem_.rank) return {};
    return wrong(id, fmt::format("peer {} is not another one of {} ranks", peer, problem_.size));
  }

  Status check_readable(size_t id, const Slice& slice) const {
    const uint64_t have = bytes_[static_cast<size_t>(slice.buffer)];
    if (slice.bytes <= have && slice.offset <= have - slice.bytes) return {};
    if (slice.bytes == 0) return {};
    return wrong(id, fmt::format("passes the end of a buffer of {} bytes", have));
  }

  Status check_writable(size_t id, const Slice& slice) const {
    TUTTI_RETURN_IF_ERROR(check_readable(id, slice));
    if (slice.bytes == 0 || slice.buffer == Buffer::scratch) return {};
    if (slice.buffer == Buffer::output)
      return output_is_read_only_ ? wrong(id, "writes the root's own buffer") : Status();
    const Range& range = writable_input_;
    if (slice.offset >= range.offset && slice.offset + slice.bytes <= range.offset + range.bytes) return {};
    return wrong(id, "writes input");
  }

  Status check_races() {
    Hazards hazards;
    std::vector<StepId> earlier;
    for (size_t id = 0; id < schedule_.steps.size(); ++id) {
      earlier.clear();
      hazards.access(schedule_, schedule_.steps[id], static_cast<StepId>(id), earlier);
      for (const StepId step : earlier)
        if (!waits_for(static_cast<StepId>(id), step))
          return wrong(id,
                       fmt::format("touches the same bytes as step {}, one of them writes, and it does not wait for it",
                                   to_text(schedule_, step)));
    }
    return {};
  }

  // Whether `later` waits for `earlier`, directly or through others. Nearest first: the way is mostly short.
  bool waits_for(StepId later, StepId earlier) {
    const auto mark = ++searches_;
    std::deque<StepId> queue{later};
    for (; !queue.empty(); queue.pop_front())
      for (const StepId before : predecessors_[static_cast<size_t>(queue.front())]) {
        if (before == earlier) return true;
        if (before < earlier || seen_[static_cast<size_t>(before)] == mark) continue;
        seen_[static_cast<size_t>(before)] = mark;
        queue.push_back(before);
      }
    return false;
  }

  const Problem& problem_;
  const Schedule& schedule_;
  uint64_t bytes_[3];     // that a schedule may name, by Buffer
  Range writable_input_;  // the output, where it lies in the input
  bool output_is_read_only_ = false;
  std::vector<std::vector<StepId>> predecessors_;
  std::vector<uint32_t> seen_;  // of each step: in which search
  uint32_t searches_ = 0;
};

}  // namespace

Status check_rank(const Problem& problem, const Schedule& schedule) { return RankCheck(problem, schedule).run(); }

}  // namespace tutti::internal::proof
