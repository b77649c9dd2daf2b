// The builder: a sequential program becomes steps with dependencies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "algo/builder.h"
#include "src/base/kernel.h"

namespace tutti::internal {
namespace {

Problem all_reduce_of(uint64_t bytes, bool in_place = false) {
  return {.operation = Operation::all_reduce, .rank = 1, .size = 4, .count = bytes, .in_place = in_place};
}

TEST(Builder, FindsWhatWaitsForWhat) {
  Builder builder(all_reduce_of(100));
  const Slice own = builder.input(0, 100), held = builder.scratch(100);
  builder.send(2, own);
  builder.recv(3, held);
  builder.reduce(std::vector<Operand>{{.slice = held}, {.slice = own}}, builder.output(0, 100), Finish::yes);
  builder.recv(2, held);
  EXPECT_EQ(to_text(builder.take()),
            "0 send input[0,100) -> 2\n"
            "1 recv from 3 -> scratch[0,100)\n"
            "2 reduce scratch[0,100) input[0,100) -> output[0,100) finish  after 1\n"
            "3 recv from 2 -> scratch[0,100)  after 2\n");
}

TEST(Builder, WaitsForOverlapsOnly) {
  Builder builder(all_reduce_of(100));
  builder.recv(0, builder.output(0, 50));
  builder.recv(0, builder.output(50, 50));
  builder.send(2, builder.output(49, 1));
  builder.send(2, builder.output(50, 1));
  builder.send(2, builder.output(0, 100));
  builder.recv(2, builder.output(10, 1));
  EXPECT_EQ(to_text(builder.take()),
            "0 recv from 0 -> output[0,50)\n"
            "1 recv from 0 -> output[50,100)\n"
            "2 send output[49,50) -> 2  after 0\n"
            "3 send output[50,51) -> 2  after 1\n"
            "4 send output[0,100) -> 2  after 0 1\n"
            "5 recv from 2 -> output[10,11)  after 4\n");
}

TEST(Builder, ExplicitOrder) {
  Builder builder(all_reduce_of(0));
  const StepId first = builder.recv(0, {});
  const StepId vanished = builder.copy(builder.input(0, 0), builder.output(0, 0));
  EXPECT_EQ(vanished, kNoStep);
  builder.send(2, {}, std::vector{first, vanished});
  EXPECT_EQ(to_text(builder.take()), "0 recv from 0 -> scratch[0,0)\n1 send scratch[0,0) -> 2  after 0\n");
}

TEST(Builder, WindowBoundsWhatIsInFlight) {
  Builder builder(all_reduce_of(5));
  Window window(2);
  for (uint64_t i = 0; i < 5; ++i) window.add(builder.recv(0, builder.output(i, 1), window.after()));
  EXPECT_EQ(to_text(builder.take()),
            "0 recv from 0 -> output[0,1)\n"
            "1 recv from 0 -> output[1,2)\n"
            "2 recv from 0 -> output[2,3)  after 0\n"
            "3 recv from 0 -> output[3,4)  after 1\n"
            "4 recv from 0 -> output[4,5)  after 2\n");
}

TEST(Builder, EmptyStepsVanishButMessagesStay) {
  Builder builder(all_reduce_of(0));
  builder.copy(builder.input(0, 0), builder.output(0, 0));
  builder.reduce(std::vector<Operand>{{.slice = builder.input(0, 0)}, {.slice = builder.input(0, 0)}},
                 builder.output(0, 0), Finish::no);
  builder.send(std::vector<int32_t>{}, builder.input(0, 0));
  builder.send(2, builder.input(0, 0));
  builder.reduce(std::vector<Operand>{{.peer = 2}, {.slice = builder.input(0, 0)}}, builder.output(0, 0), Finish::yes);
  EXPECT_EQ(to_text(builder.take()),
            "0 send input[0,0) -> 2\n"
            "1 reduce from 2 input[0,0) -> output[0,0) finish\n");
}

TEST(Builder, OneLocalOperandIsACopy) {
  Builder builder(all_reduce_of(8));
  builder.reduce(std::vector<Operand>{{.slice = builder.input(0, 8)}}, builder.output(0, 8), Finish::yes);
  EXPECT_EQ(to_text(builder.take()), "0 copy input[0,8) -> output[0,8)\n");
}

TEST(Builder, ManyOperandsTakeSeveralPassesInOrder) {
  Problem problem = all_reduce_of(8);
  problem.size = 200;
  Builder builder(problem);
  std::vector<Operand> operands;
  operands.reserve(200);
  for (int32_t peer = 0; peer < 200; ++peer)
    operands.push_back(peer == 1 ? Operand{.slice = builder.input(0, 8)} : Operand{.peer = peer});
  builder.reduce(operands, builder.output(0, 8), Finish::yes);
  const Schedule schedule = builder.take();
  ASSERT_EQ(schedule.steps.size(), 4U);  // 64, then 63 more with each pass
  int32_t next = 0;
  for (const Step& step : schedule.steps) {
    EXPECT_LE(step.operand_count, static_cast<uint32_t>(kMaxOperands));
    EXPECT_EQ(step.finish, &step == &schedule.steps.back());
    for (const Operand& operand : schedule.operands_of(step)) {
      if (operand.slice.buffer == Buffer::scratch && operand.slice.bytes > 0) continue;
      if (operand.peer != Operand::kLocal) {
        EXPECT_EQ(operand.peer, next);
      }
      ++next;
    }
  }
  EXPECT_EQ(next, 200);
  EXPECT_EQ(schedule.steps.back().slice, (Slice{Buffer::output, 0, 8}));
}

// What input(0, 4) and output(0, 4) are on rank 1 of 3, root 1, in place.
std::pair<Slice, Slice> in_place_names(Operation operation, int root = 1) {
  const Builder builder({.operation = operation, .rank = 1, .size = 3, .root = root, .count = 4, .in_place = true});
  return {builder.input(0, 4), builder.output(0, 4)};
}

TEST(Builder, InPlaceNamesMemoryOnce) {
  const Slice output_0{Buffer::output, 0, 4}, output_4{Buffer::output, 4, 4};
  const Slice input_0{Buffer::input, 0, 4}, input_4{Buffer::input, 4, 4};
  using Names = std::pair<Slice, Slice>;
  EXPECT_EQ(in_place_names(Operation::broadcast), Names(output_0, output_0));
  EXPECT_EQ(in_place_names(Operation::reduce), Names(output_0, output_0));
  EXPECT_EQ(in_place_names(Operation::all_reduce), Names(output_0, output_0));
  EXPECT_EQ(in_place_names(Operation::all_to_all), Names(output_0, output_0));
  EXPECT_EQ(in_place_names(Operation::gather), Names(output_4, output_0));
  EXPECT_EQ(in_place_names(Operation::all_gather), Names(output_4, output_0));
  EXPECT_EQ(in_place_names(Operation::scatter), Names(input_0, input_4));
  EXPECT_EQ(in_place_names(Operation::reduce_scatter), Names(input_0, input_4));
  // Only the root of these has both buffers.
  EXPECT_EQ(in_place_names(Operation::reduce, 0), Names(input_0, output_0));
  EXPECT_EQ(in_place_names(Operation::gather, 0), Names(input_0, output_0));
  EXPECT_EQ(in_place_names(Operation::scatter, 0), Names(input_0, output_0));
}

TEST(Builder, StableInputIsCopiedOnlyInPlace) {
  Builder apart(all_reduce_of(8));
  EXPECT_EQ(apart.stable(apart.input(0, 8)), apart.input(0, 8));
  EXPECT_TRUE(apart.take().steps.empty());
  Builder shared(all_reduce_of(8, true));
  EXPECT_EQ(shared.stable(shared.input(0, 8)), (Slice{Buffer::scratch, 0, 8}));
  EXPECT_EQ(to_text(shared.take()), "0 copy output[0,8) -> scratch[0,8)\n");
}

TEST(Builder, IsEmptyAfterTake) {
  Builder builder(all_reduce_of(8));
  builder.recv(0, builder.scratch(8));
  EXPECT_EQ(builder.take().scratch_bytes, 8U);
  builder.recv(0, builder.output(0, 8));
  const Schedule second = builder.take();
  EXPECT_EQ(second.scratch_bytes, 0U);
  EXPECT_EQ(to_text(second), "0 recv from 0 -> output[0,8)\n");
}

// For each step, the bytes that it reads and writes: buffer * kBytes + place.
constexpr uint64_t kBytes = 12;
struct Touched {
  std::vector<uint64_t> reads, writes;
};
void touch(const Slice& slice, std::vector<uint64_t>& bytes) {
  for (uint64_t i = 0; i < slice.bytes; ++i)
    bytes.push_back(static_cast<uint64_t>(slice.buffer) * kBytes + slice.offset + i);
}
bool meet(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  for (const uint64_t byte : a)
    if (std::find(b.begin(), b.end(), byte) != b.end()) return true;
  return false;
}

TEST(Builder, RandomProgramsAreOrderedExactlyWhereTheyMust) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    Builder builder(all_reduce_of(kBytes));
    const uint64_t scratch = builder.scratch(kBytes).offset;
    const auto slice = [&](uint64_t bytes, bool written) {
      const uint64_t offset = random() % (kBytes - bytes + 1);
      switch (random() % (written ? 2 : 3)) {
        case 0: return Slice{Buffer::scratch, scratch + offset, bytes};
        case 1: return builder.output(offset, bytes);
        default: return builder.input(offset, bytes);
      }
    };
    std::vector<Touched> touched;
    for (int step = 0; step < 12; ++step) {
      const uint64_t bytes = 1 + random() % 4;
      const Slice a = slice(bytes, false), b = slice(bytes, true);
      Touched now;
      switch (random() % 4) {
        case 0:
          builder.send(0, a);
          touch(a, now.reads);
          break;
        case 1:
          builder.recv(0, b);
          touch(b, now.writes);
          break;
        case 2:
          if (builder.copy(a, b) == kNoStep) continue;
          touch(a, now.reads);
          touch(b, now.writes);
          break;
        default:
          builder.reduce(std::vector<Operand>{{.slice = a}, {.peer = 0}, {.slice = b}}, b, Finish::no);
          touch(a, now.reads);
          touch(b, now.reads);
          touch(b, now.writes);
      }
      touched.push_back(now);
    }
    const Schedule schedule = builder.take();
    const size_t count = touched.size();
    ASSERT_EQ(schedule.steps.size(), count);
    // Reachability by the schedule, and by the conflicts of bytes.
    std::vector<std::vector<bool>> waits(count, std::vector<bool>(count)), must = waits;
    for (size_t i = 0; i < count; ++i)
      for (const uint32_t successor : schedule.successors_of(schedule.steps[i])) waits[i][successor] = true;
    for (size_t i = 0; i < count; ++i)
      for (size_t j = i + 1; j < count; ++j)
        must[i][j] = meet(touched[i].writes, touched[j].reads) || meet(touched[i].writes, touched[j].writes) ||
                     meet(touched[i].reads, touched[j].writes);
    for (auto* graph : {&waits, &must})
      for (size_t k = 0; k < count; ++k)
        for (size_t i = 0; i < count; ++i)
          for (size_t j = 0; j < count; ++j)
            if ((*graph)[i][k] && (*graph)[k][j]) (*graph)[i][j] = true;
    ASSERT_EQ(waits, must) << "round " << round << '\n' << to_text(schedule);
  }
}

// Ranks 1 and 3 of four do an operation of their own, on memory that lies in two places.
Scope scope_of(Operation operation) {
  Scope scope;
  scope.problem = {.operation = operation, .rank = 0, .size = 2, .count = 8};
  scope.members = {1, 3};
  scope.input = {{Buffer::input, 50, 4}, {Buffer::input, 70, 4}};
  scope.output = {{Buffer::output, 80, 4}, {Buffer::output, 84, 4}};
  return scope;
}

TEST(Scope, RanksAndSlicesAreThoseOfTheWhole) {
  Builder builder(all_reduce_of(100));
  const StepId last = builder.within(scope_of(Operation::all_reduce), [](Builder& inner) {
    EXPECT_EQ(inner.problem().size, 2);
    inner.send(1, inner.input(1, 2));
    inner.recv(1, inner.output(2, 4));  // its two places follow each other
  });
  EXPECT_EQ(last, 1);
  EXPECT_EQ(builder.problem().size, 4);
  EXPECT_EQ(to_text(builder.take()),
            "0 send input[51,53) -> 3\n"
            "1 recv from 3 -> output[82,86)\n");
}

TEST(Scope, WhatLiesInSeveralPlacesGoesThroughScratch) {
  Builder builder(all_reduce_of(100));
  Scope scope = scope_of(Operation::all_reduce);
  scope.output[1].offset = 90;
  builder.within(scope, [](Builder& inner) {
    inner.send(1, inner.input(0, 8));
    inner.recv(1, inner.output(2, 4));
    inner.copy(inner.input(0, 8), inner.output(0, 8));
  });
  EXPECT_EQ(to_text(builder.take()),
            "0 copy input[50,54) -> scratch[0,4)\n"
            "1 copy input[70,74) -> scratch[4,8)\n"
            "2 send scratch[0,8) -> 3  after 0 1\n"
            "3 recv from 3 -> scratch[64,68)\n"
            "4 copy scratch[64,66) -> output[82,84)  after 3\n"
            "5 copy scratch[66,68) -> output[90,92)  after 3\n"
            "6 copy input[50,54) -> output[80,84)  after 4\n"
            "7 copy input[70,74) -> output[90,94)  after 5\n");
}

TEST(Scope, FinishesOnlyWhereItIsTheWholeReduction) {
  for (const Finish finish : {Finish::no, Finish::yes}) {
    Builder builder(all_reduce_of(100));
    Scope scope = scope_of(Operation::all_reduce);
    scope.finish = finish;
    scope.after = {builder.recv(0, builder.scratch(1))};
    builder.within(scope, [](Builder& inner) {
      inner.reduce(std::vector<Operand>{{.slice = inner.input(0, 4)}, {.peer = 1}}, inner.output(0, 4), Finish::yes);
    });
    EXPECT_EQ(to_text(builder.take()),
              std::string("0 recv from 0 -> scratch[0,1)\n1 reduce input[50,54) from 3 -> output[80,84)") +
                  (finish == Finish::yes ? " finish" : "") + "  after 0\n");
  }
}

TEST(Scope, InputIsSavedWhereItSharesTheOutputsMemory) {
  for (const bool shares : {false, true}) {
    Builder builder(all_reduce_of(100));
    Scope scope = scope_of(Operation::all_reduce);
    if (shares) scope.input = scope.output;
    builder.within(scope, [](Builder& inner) { inner.send(1, inner.stable(inner.input(0, 4))); });
    EXPECT_EQ(to_text(builder.take()), shares
                                           ? "0 copy output[80,84) -> scratch[0,4)\n1 send scratch[0,4) -> 3  after 0\n"
                                           : "0 send input[50,54) -> 3\n");
  }
}

TEST(Builder, ScratchIsUsedAgainAfterItWasRead) {
  Builder builder(all_reduce_of(100));
  const uint64_t mark = builder.scratch_mark();
  builder.recv(0, builder.scratch(100));
  builder.send(2, builder.scratch(10));
  builder.rewind_scratch(mark);
  builder.recv(0, builder.scratch(50));
  const Schedule schedule = builder.take();
  EXPECT_EQ(to_text(schedule),
            "0 recv from 0 -> scratch[0,100)\n"
            "1 send scratch[128,138) -> 2\n"
            "2 recv from 0 -> scratch[0,50)  after 0\n");
  EXPECT_EQ(schedule.scratch_bytes, 138U);
}

}  // namespace
}  // namespace tutti::internal
