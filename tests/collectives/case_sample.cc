#include "case_sample.h"

#include <algorithm>
#include <cstdlib>

#include "covering.h"
#include "elements.h"

namespace tutti_test {

const std::vector<Operation> kOperations{Operation::barrier,        Operation::broadcast,  Operation::reduce,
                                         Operation::all_reduce,     Operation::scatter,    Operation::gather,
                                         Operation::reduce_scatter, Operation::all_gather, Operation::all_to_all};

namespace {

const std::vector<uint64_t> kCounts{0, 1, 7, 1024, 64 * 1024 + 3, kMostCount};

bool has_list(Operation operation) {
  return operation == Operation::scatter || operation == Operation::gather || operation == Operation::all_gather ||
         operation == Operation::all_to_all;
}

// The dimensions: operation, ranks, count, type, operator, root (first, middle, last), in place, list, async, memory.
Case from_row(const Row& row, int ranks) {
  Case c;
  c.operation = kOperations[row[0]];
  c.count = kCounts[row[2]];
  c.type = static_cast<tutti_type>(row[3]);
  c.op = static_cast<tutti_op>(row[4]);
  c.root = row[5] == 0 ? 0 : row[5] == 1 ? ranks / 2 : ranks - 1;
  c.in_place = row[6];
  c.as_list = row[7];
  c.async = row[8];
  c.memory = static_cast<MemoryKind>(row[9]);
  return c;
}

bool exists(const Case& c) {
  if (is_bitwise_op(c.op) && is_float_type(c.type)) return false;
  if (c.as_list && (!has_list(c.operation) || c.in_place)) return false;
  return !(c.in_place && (c.operation == Operation::broadcast || c.operation == Operation::barrier));
}

}  // namespace

uint32_t sample_seed() {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 20261201;
}

std::map<int, std::vector<Case>> sampled_cases(const std::vector<int>& ranks, uint64_t most_count, uint32_t seed) {
  const auto counts = std::ranges::count_if(kCounts, [&](uint64_t count) { return count <= most_count; });
  const std::vector<int> sizes{int(kOperations.size()), int(ranks.size()), int(counts), 12, 8, 3, 2, 2, 2, 3};
  const auto is_valid = [&](const Row& row) { return exists(from_row(row, ranks[row[1]])); };
  std::map<int, std::vector<Case>> by_ranks;
  for (const Row& row : pairwise_sample(sizes, is_valid, seed))
    by_ranks[ranks[row[1]]].push_back(from_row(row, ranks[row[1]]));
  return by_ranks;
}

}  // namespace tutti_test
