// Every registered flat algorithm (those that are composed of them: test_node_first.cc), proved: 1 to 64 ranks, every
// root, sizes around each boundary, in place, not, and mixed, every radix; and samples beyond. One test for each
// algorithm: a new line of the registry is proved without a word.
//
// Up to kExhaustiveSize ranks every combination is proved; above, each rank count and root with a seeded sample of the
// rest. The seed is the rank count, so that a failure repeats.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <random>
#include <string_view>

#include "algo/partition.h"
#include "algo/selector.h"
#include "algo/verifier.h"
#include "tests/algo/proof_helpers.h"

namespace tutti::internal {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kExhaustiveSize = 7, kLargestSize = 24;  // the checks of memory are slow, and look for other faults
#else
constexpr int kExhaustiveSize = 16, kLargestSize = 64;
#endif
constexpr uint64_t kSegment = 128;  // forced, so that few bytes make many segments

// Whether tune sets a radix, and a segment: what it leaves alone, the builder does not read.
struct Knobs {
  bool radix = false, segment = false;
  explicit Knobs(const Algorithm& algorithm) {
    if (algorithm.tune == nullptr) return;
    Problem problem{.operation = algorithm.operation, .size = 8, .count = 1 << 20, .segment_bytes = 1, .radix = 0};
    algorithm.tune(problem, kSharedMemory);
    radix = problem.radix != 0;
    segment = problem.segment_bytes != 1;
  }
};

// Element counts at which something changes: nothing, one, about one for each rank; about one cache line for each rank
// (where parts are cut); about one segment, and several; and these for each rank's part.
std::vector<uint64_t> counts_for(const Algorithm& algorithm, int size, uint32_t element_bytes) {
  const auto p = static_cast<uint64_t>(size);
  const uint64_t line = 64 / element_bytes, segment = kSegment / element_bytes;
  std::vector<uint64_t> counts{0, 1, p - 1, p, p + 1};
  if (algorithm.operation == Operation::barrier) return {0};
  const std::vector<uint64_t> lengths{line, segment - 1, segment, segment + 1, 5 * segment + 1};
  counts.insert(counts.end(), lengths.begin(), lengths.end());
  if (algorithm.operation == Operation::all_reduce)
    for (const uint64_t length : lengths)
      for (const uint64_t count : {p * length - 1, p * length, p * length + 1}) counts.push_back(count);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

struct Case {
  Problem problem;
  InPlace in_place = InPlace::none;
};

// All combinations for one root.
std::vector<Case> cases_for(const Algorithm& algorithm, int size, int root) {
  const Knobs knobs(algorithm);
  std::vector<Case> cases;
  for (const uint32_t element_bytes : {4U, 1U})
    for (const uint64_t count : counts_for(algorithm, size, element_bytes))
      for (const uint64_t segment : knobs.segment ? std::vector<uint64_t>{kSegment, 0} : std::vector<uint64_t>{0})
        for (int radix = 2; radix <= (knobs.radix ? 8 : 2); ++radix)
          for (const InPlace in_place : {InPlace::none, InPlace::all, InPlace::mixed})
            cases.push_back({{.operation = algorithm.operation,
                              .size = size,
                              .root = root,
                              .count = count,
                              .element_bytes = element_bytes,
                              .segment_bytes = segment,
                              .radix = radix},
                             in_place});
  return cases;
}

void expect_proved(const Algorithm& algorithm, const Case& one, std::mt19937_64& random) {
  const auto in_place = ranks_in_place(one.problem.size, one.in_place, random);
  const Status status = prove(algorithm, one.problem, in_place);
  ASSERT_TRUE(status.ok()) << text_of(algorithm, one.problem) << " in place " << testing::PrintToString(in_place)
                           << ": " << status.message();
}

class Proof : public testing::TestWithParam<Algorithm> {};

TEST_P(Proof, FewRanksEveryCombination) {
  const Algorithm& algorithm = GetParam();
  for (int size = 1; size <= kExhaustiveSize; ++size) {
    std::mt19937_64 random(static_cast<uint64_t>(size));
    for (int root = 0; root < (is_rooted(algorithm.operation) ? size : 1); ++root)
      for (const Case& one : cases_for(algorithm, size, root))
        ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm, one, random));
  }
}

TEST_P(Proof, EveryRankCountAndRoot) {
  const Algorithm& algorithm = GetParam();
  const bool rooted = is_rooted(algorithm.operation);
  for (int size = kExhaustiveSize + 1; size <= kLargestSize; ++size) {
    std::mt19937_64 random(static_cast<uint64_t>(size));
    for (int root = 0; root < (rooted ? size : 1); ++root) {
      auto cases = cases_for(algorithm, size, root);
      std::shuffle(cases.begin(), cases.end(), random);
      cases.resize(std::min<size_t>(cases.size(), rooted ? 4 : 24));
      for (const Case& one : cases) ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm, one, random));
    }
  }
}

// What is proved grows with the square of the ranks where all talk to all, a block travels past all, or all ranks hold
// a block of each.
int largest_sampled_size(const Algorithm& algorithm) {
  const std::string_view name = algorithm.name;
  if (is_rooted(algorithm.operation)) return 4096;
  if (name == "one_shot" || name == "linear" || name == "ring") return 255;
  return algorithm.operation == Operation::all_gather ? 1000 : 4096;
}

TEST_P(Proof, ManyRanks) {
  const Algorithm& algorithm = GetParam();
  for (const int size : {100, 255, 1000, 4096}) {
    if (size > largest_sampled_size(algorithm)) break;
    std::mt19937_64 random(static_cast<uint64_t>(size));
    for (const int root : {0, 1, size / 2, size - 1}) {
      if (root > 0 && !is_rooted(algorithm.operation)) break;
      Case one{{.operation = algorithm.operation,
                .size = size,
                .root = root,
                .count = 70,
                .element_bytes = 4,
                .segment_bytes = kSegment,
                .radix = 2 + static_cast<int>(random() % 7)},
               InPlace::mixed};
      if (algorithm.operation == Operation::barrier) one.problem.count = 0;
      ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm, one, random));
    }
  }
}

// As the selector would really call it, and with more bytes than 32 bits can count.
TEST_P(Proof, AsTuned) {
  const Algorithm& algorithm = GetParam();
  std::mt19937_64 random(1);
  for (const int size : {2, 3, 8})
    for (const uint64_t count : {uint64_t{2000}, uint64_t{100000}, (uint64_t{1} << 25) + 3, (uint64_t{1} << 31) + 3,
                                 (uint64_t{1} << 34) + 1}) {
      if (count > (uint64_t{1} << 31) + 3 && size > 2) continue;
      Case one{{.operation = algorithm.operation, .size = size, .root = size - 1, .count = count}, InPlace::mixed};
      if (algorithm.operation == Operation::barrier) one.problem.count = 0;
      if (algorithm.tune != nullptr) algorithm.tune(one.problem, kSharedMemory);
      ASSERT_NO_FATAL_FAILURE(expect_proved(algorithm, one, random));
    }
}

// No pair exchanges too many messages, also where a whole proof would take too long.
TEST_P(Proof, MessagesOfAPairAreBounded) {
  const Algorithm& algorithm = GetParam();
  for (const int size : {16, 64, 1000}) {
    Problem problem{.operation = algorithm.operation,
                    .rank = 1,
                    .size = size,
                    .count = algorithm.operation == Operation::barrier ? 0 : (uint64_t{1} << 34) / size};
    if (algorithm.tune != nullptr) algorithm.tune(problem, kSharedMemory);
    const Schedule schedule = build({&algorithm, problem});
    std::vector<uint64_t> sent(static_cast<size_t>(size));
    for (const Step& step : schedule.steps)
      for (const int32_t peer : schedule.peers_of(step))
        if (step.kind == StepKind::send) ++sent[static_cast<size_t>(peer)];
    EXPECT_LE(*std::max_element(sent.begin(), sent.end()), kMaxMessagesPerPair) << "size " << size;
  }
}

std::vector<Algorithm> collective_algorithms() {
  std::vector<Algorithm> all = flat(algorithms());
  std::erase_if(all, [](const Algorithm& algorithm) { return is_pairwise(algorithm.operation); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Proof, testing::ValuesIn(collective_algorithms()), [](const auto& parameter) {
  return std::string(name(parameter.param.operation)) + "_" + parameter.param.name;
});

TEST(ProofOfPairs, SendMeetsRecv) {
  for (const uint64_t count : {0, 1, 1000}) {
    std::vector<Problem> problems{{.operation = Operation::send, .rank = 0, .size = 2, .root = 1, .count = count},
                                  {.operation = Operation::recv, .rank = 1, .size = 2, .root = 0, .count = count}};
    std::vector<Schedule> schedules;
    for (const Problem& problem : problems) schedules.push_back(build(select(problem, kSharedMemory)));
    EXPECT_EQ(schedules[0].steps.size(), 1U);
    const Status status = verify(problems, schedules);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace
}  // namespace tutti::internal
