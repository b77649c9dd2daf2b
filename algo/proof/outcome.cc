// See outcome.h. Pure functions.
#include "algo/proof/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "algo/partition.h"

namespace tutti::internal::proof {
namespace {

// A range of the output that must hold a rank's input from `position` on.
struct Expected {
  Range range;
  int rank = 0;
  uint64_t position = 0;
};

std::vector<Expected> expected_moves(const Problem& problem) {
  const Range whole{0, problem.bytes()};
  std::vector<Expected> blocks;
  blocks.reserve(static_cast<size_t>(problem.size));
  for (int rank = 0; rank < problem.size; ++rank) blocks.push_back({block(problem, rank), rank, 0});
  switch (problem.operation) {
    case Operation::broadcast:
    case Operation::recv: return {{whole, problem.root, 0}};
    case Operation::scatter: return {{whole, problem.root, block(problem, problem.rank).offset}};
    case Operation::all_gather: return blocks;
    case Operation::gather: return problem.rank == problem.root ? blocks : std::vector<Expected>{};
    case Operation::all_to_all:
      for (Expected& expected : blocks) expected.position = block(problem, problem.rank).offset;
      return blocks;
    case Operation::barrier:
    case Operation::send:
    case Operation::reduce:
    case Operation::all_reduce:
    case Operation::reduce_scatter: break;
  }
  return {};
}

std::vector<Fragment> read_output(const Problem& problem, const Memory& memory, const Range& range) {
  const Aliasing shared = aliasing(problem);
  if (shared.kind == Aliasing::Kind::output_in_input)
    return memory.read({Buffer::input, shared.offset + range.offset, range.bytes});
  return memory.read({Buffer::output, range.offset, range.bytes});
}

Status wrong(const Problem& problem, uint64_t byte, const std::string& found, const std::string& wanted) {
  return {Code::internal,
          fmt::format("rank {}: byte {} of the output holds {}, not {}", problem.rank, byte, found, wanted)};
}

Status check_moves(const Problem& problem, const Memory& memory, const Expressions& expressions) {
  for (const Expected& expected : expected_moves(problem))
    for (const Fragment& fragment : read_output(problem, memory, expected.range)) {
      const Value& value = fragment.value;
      if (value.node == expressions.input_of(expected.rank) && value.shift == expected.position) continue;
      return wrong(problem, expected.range.offset + fragment.begin,
                   fmt::format("{} at {}", expressions.text(value.node), fragment.begin + value.shift),
                   fmt::format("{} at {}", expected.rank, fragment.begin + expected.position));
    }
  return {};
}

Status check_reduction(const Problem& problem, const Memory& memory, const Expressions& expressions) {
  const bool is_scattered = problem.operation == Operation::reduce_scatter;
  const uint64_t position = is_scattered ? block(problem, problem.rank).offset : 0;
  for (const Fragment& fragment : read_output(problem, memory, {0, output_bytes(problem)})) {
    const Value& value = fragment.value;
    if (expressions.is_complete(value.node) && value.shift == position) continue;
    return wrong(problem, fragment.begin,
                 fmt::format("{} at {}", expressions.text(value.node), fragment.begin + value.shift),
                 fmt::format("all ranks' at {}, finished", fragment.begin + position));
  }
  return {};
}

// All ranks must have combined in the same order; rank 0 is as good as any to compare with.
Status check_same_order(std::span<const Problem> problems, const Simulation& simulation,
                        const Expressions& expressions) {
  const Range whole{0, problems[0].bytes()};
  const auto first = read_output(problems[0], simulation.memory(0), whole);
  for (const Problem& problem : problems) {
    const auto other = read_output(problem, simulation.memory(problem.rank), whole);
    for (size_t i = 0, j = 0; i < first.size();) {
      if (first[i].value != other[j].value)
        return wrong(problem, std::max(first[i].begin, other[j].begin), expressions.text(other[j].value.node),
                     fmt::format("as rank 0 {}", expressions.text(first[i].value.node)));
      const uint64_t end = std::min(first[i].end, other[j].end);
      i += first[i].end == end;
      j += other[j].end == end;
    }
  }
  return {};
}

Status check_barrier(const Problem& problem, const Simulation& simulation) {
  for (int other = 0; other < problem.size; ++other)
    if (!simulation.knows(problem.rank, other))
      return {Code::internal, fmt::format("rank {} may be done before rank {} has begun", problem.rank, other)};
  return {};
}

}  // namespace

Status check_outcome(std::span<const Problem> problems, const Simulation& simulation, const Expressions& expressions) {
  for (const Problem& problem : problems) {
    const Memory& memory = simulation.memory(problem.rank);
    if (problem.operation == Operation::barrier) TUTTI_RETURN_IF_ERROR(check_barrier(problem, simulation));
    if (is_reducing(problem.operation)) TUTTI_RETURN_IF_ERROR(check_reduction(problem, memory, expressions));
    TUTTI_RETURN_IF_ERROR(check_moves(problem, memory, expressions));
  }
  if (problems[0].operation == Operation::all_reduce) return check_same_order(problems, simulation, expressions);
  return {};
}

}  // namespace tutti::internal::proof
