// Schedules for lists of pieces: the same operation, in slices that cross no piece's end.
#include <gtest/gtest.h>

#include <random>

#include "algo/pieces.h"
#include "algo/selector.h"
#include "algo/verifier.h"
#include "tests/algo/proof_helpers.h"

namespace tutti::internal {
namespace {

TEST(Pieces, RouteWhatCrossesThroughScratch) {
  Builder builder({.operation = Operation::gather, .rank = 0, .size = 4, .count = 10});
  builder.copy(builder.input(0, 10), builder.output(0, 10));
  builder.recv(1, builder.output(10, 10));
  builder.recv(2, builder.output(20, 20));
  EXPECT_EQ(to_text(split_pieces(builder.take(), 0, 10)),
            "0 copy input[0,10) -> output[0,10)\n"
            "1 recv from 1 -> output[10,20)\n"
            "2 recv from 2 -> scratch[0,20)\n"
            "3 copy scratch[0,10) -> output[20,30)  after 2\n"
            "4 copy scratch[10,20) -> output[30,40)  after 2\n");
}

TEST(Pieces, GatherWhatIsSentAcross) {
  Builder builder({.operation = Operation::scatter, .rank = 0, .size = 2, .count = 10});
  builder.send(1, builder.input(5, 10));
  builder.copy(builder.input(15, 5), builder.scratch(5));
  EXPECT_EQ(to_text(split_pieces(builder.take(), 10, 0)),
            "0 copy input[5,10) -> scratch[64,69)\n"
            "1 copy input[10,15) -> scratch[69,74)\n"
            "2 send scratch[64,74) -> 1  after 0 1\n"
            "3 copy input[15,20) -> scratch[0,5)\n");
}

TEST(Pieces, CombineAcross) {
  Builder builder({.operation = Operation::reduce_scatter, .rank = 0, .size = 2, .count = 8});
  const Operand operands[] = {{.slice = builder.input(4, 8)}, {.peer = 1}};
  builder.reduce(operands, builder.output(0, 8), Finish::yes);
  EXPECT_EQ(to_text(split_pieces(builder.take(), 8, 4)),
            "0 copy input[4,8) -> scratch[0,4)\n"
            "1 copy input[8,12) -> scratch[4,8)\n"
            "2 reduce scratch[0,8) from 1 -> scratch[64,72) finish  after 0 1\n"
            "3 copy scratch[64,68) -> output[0,4)  after 2\n"
            "4 copy scratch[68,72) -> output[4,8)  after 2\n");
}

TEST(Pieces, KeepTheOrderThatWasAskedFor) {
  Builder builder({.operation = Operation::gather, .rank = 0, .size = 4, .count = 10});
  const StepId first = builder.recv(1, builder.output(10, 20));
  builder.recv(2, builder.output(30, 10), std::vector{first});
  EXPECT_EQ(to_text(split_pieces(builder.take(), 0, 10)),
            "0 recv from 1 -> scratch[0,20)\n"
            "1 copy scratch[0,10) -> output[10,20)  after 0\n"
            "2 copy scratch[10,20) -> output[20,30)  after 0\n"
            "3 recv from 2 -> output[30,40)  after 1 2\n");
}

TEST(Pieces, NothingChangesForContiguousBuffers) {
  const Problem problem{.operation = Operation::gather, .rank = 0, .size = 9, .count = 10};
  const auto overrides = parse_overrides("gather:knomial");
  ASSERT_TRUE(overrides.ok());
  const Schedule schedule = build(select(problem, kSharedMemory, overrides.value()));
  EXPECT_EQ(to_text(split_pieces(schedule, 0, 0)), to_text(schedule));
}

void expect_within_pieces(const Slice& slice, const uint64_t (&piece_bytes)[3]) {
  const uint64_t piece = piece_bytes[static_cast<size_t>(slice.buffer)];
  if (piece == 0 || slice.bytes == 0) return;
  EXPECT_EQ(slice.offset / piece, (slice.offset + slice.bytes - 1) / piece);
}

void expect_within_pieces(const Schedule& schedule, const uint64_t (&piece_bytes)[3]) {
  for (const Step& step : schedule.steps) {
    expect_within_pieces(step.slice, piece_bytes);
    expect_within_pieces(step.source, piece_bytes);
    for (const Operand& operand : schedule.operands_of(step)) expect_within_pieces(operand.slice, piece_bytes);
  }
}

// Each rank by itself takes the one form or the other.
void prove_with_pieces(const Algorithm& algorithm, const Problem& base, std::mt19937_64& random) {
  std::vector<Problem> problems;
  std::vector<Schedule> schedules;
  const auto in_place = ranks_in_place(base.size, InPlace::mixed, random);
  for (int rank = 0; rank < base.size; ++rank) {
    Problem& problem = problems.emplace_back(base);
    problem.rank = rank;
    problem.in_place = in_place[static_cast<size_t>(rank)];
    const uint64_t many = static_cast<uint64_t>(base.size) * base.bytes();
    const auto piece_of = [&](uint64_t bytes) { return bytes == many && random() % 3 > 0 ? base.bytes() : 0; };
    const uint64_t pieces[3] = {piece_of(input_bytes(problem)), piece_of(output_bytes(problem)), 0};
    schedules.push_back(split_pieces(build({&algorithm, problem}), pieces[0], pieces[1]));
    expect_within_pieces(schedules.back(), pieces);
  }
  const Status status = verify(problems, schedules);
  ASSERT_TRUE(status.ok()) << text_of(algorithm, base) << testing::PrintToString(in_place) << ": " << status.message();
}

TEST(Pieces, AllListFormsAreProved) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (const Operation operation :
       {Operation::scatter, Operation::gather, Operation::all_gather, Operation::all_to_all, Operation::reduce_scatter})
    for (const Algorithm& algorithm : flat(algorithms(operation)))
      for (int size = 1; size <= 20; ++size)
        for (const uint64_t count : {0, 1, 7, 50})
          for (const uint64_t segment : {0, 64})
            for (int radix = 2; radix <= 4; ++radix) {
              const int root = static_cast<int>(random() % static_cast<uint64_t>(size));
              ASSERT_NO_FATAL_FAILURE(
                  prove_with_pieces(algorithm, {operation, 0, size, root, count, 4, false, segment, radix}, random));
            }
}

}  // namespace
}  // namespace tutti::internal
