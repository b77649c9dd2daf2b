// Every collective on real memory, over the dimensions that matter: a sample in which every pair of values occurs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "collective_case.h"
#include "covering.h"

namespace tutti_test {
namespace {

TEST(Collectives, AllReduceInPlaceAsAProgramWouldCallIt) {
  run_world(4, [](tutti_group* world, int rank) {
    std::vector<float> gradient(1000, static_cast<float>(rank));
    EXPECT_TUTTI_OK(
        tutti_all_reduce(world, gradient.data(), gradient.data(), gradient.size(), TUTTI_FLOAT32, TUTTI_SUM, nullptr));
    EXPECT_EQ(gradient, std::vector<float>(1000, 0 + 1 + 2 + 3));
  });
}

const std::vector<int> kRanks{1, 2, 3, 4, 5, 7, 8};
const std::vector<uint64_t> kCounts{0, 1, 7, 1024, 64 * 1024 + 3, 1024 * 1024};
const std::vector<Operation> kOperations{Operation::barrier,        Operation::broadcast,  Operation::reduce,
                                         Operation::all_reduce,     Operation::scatter,    Operation::gather,
                                         Operation::reduce_scatter, Operation::all_gather, Operation::all_to_all};

bool has_list(Operation operation) {
  return operation == Operation::scatter || operation == Operation::gather || operation == Operation::all_gather ||
         operation == Operation::all_to_all;
}

struct Sampled {
  int ranks;
  Case c;
};

// The dimensions: operation, ranks, count, type, operator, root (first, middle, last), in place, list, async, memory.
Sampled from_row(const Row& row) {
  Sampled s{kRanks[row[1]], {}};
  s.c.operation = kOperations[row[0]];
  s.c.count = kCounts[row[2]];
  s.c.type = static_cast<tutti_type>(row[3]);
  s.c.op = static_cast<tutti_op>(row[4]);
  s.c.root = row[5] == 0 ? 0 : row[5] == 1 ? s.ranks / 2 : s.ranks - 1;
  s.c.in_place = row[6];
  s.c.as_list = row[7];
  s.c.async = row[8];
  s.c.memory = static_cast<MemoryKind>(row[9]);
  return s;
}

bool exists(const Row& row) {
  const Case c = from_row(row).c;
  if (is_bitwise_op(c.op) && is_float_type(c.type)) return false;
  if (c.as_list && (!has_list(c.operation) || c.in_place)) return false;
  return !(c.in_place && (c.operation == Operation::broadcast || c.operation == Operation::barrier));
}

uint32_t seed() {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 20261201;
}

TEST(Collectives, SampleInWhichEveryPairOfValuesOccurs) {
  const std::vector<int> sizes{int(kOperations.size()), int(kRanks.size()), int(kCounts.size()), 12, 8, 3, 2, 2, 2, 3};
  std::map<int, std::vector<Case>> by_ranks;
  for (const Row& row : pairwise_sample(sizes, exists, seed())) {
    const Sampled sampled = from_row(row);
    by_ranks[sampled.ranks].push_back(sampled.c);
  }
  size_t total = 0;
  for (const auto& [ranks, cases] : by_ranks) {
    total += cases.size();
    run_world(ranks, [&](tutti_group* world, int) {
      for (const Case& c : cases) run_case(world, c);
    });
  }
  RecordProperty("cases", static_cast<int>(total));
  std::printf("%zu cases, seed %u (TUTTI_TEST_SEED)\n", total, seed());
}

// Every type with every operator, and every operation with every rank count, in full at one size.
TEST(Collectives, EveryTypeAndOperator) {
  run_world(3, [](tutti_group* world, int) {
    for (int type = 0; type < 12; ++type)
      for (int op = 0; op < 8; ++op) {
        if (is_bitwise_op(static_cast<tutti_op>(op)) && is_float_type(static_cast<tutti_type>(type))) continue;
        for (Operation operation : {Operation::all_reduce, Operation::reduce, Operation::reduce_scatter})
          run_case(world, {.operation = operation,
                           .count = 259,
                           .type = static_cast<tutti_type>(type),
                           .op = static_cast<tutti_op>(op),
                           .root = 1});
      }
  });
}

TEST(Collectives, EveryRootAndRankCount) {
  for (int ranks : kRanks)
    run_world(ranks, [&](tutti_group* world, int) {
      for (Operation operation : kOperations)
        for (int root = 0; root < ranks; ++root)
          for (uint64_t count : {0u, 1u, 5000u})
            run_case(world, {.operation = operation, .count = count, .root = root});
    });
}

}  // namespace
}  // namespace tutti_test
