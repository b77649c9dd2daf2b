// The verifier refuses what is wrong: each kind of fault, put into schedules that were right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "algo/partition.h"
#include "algo/selector.h"
#include "algo/verifier.h"
#include "src/base/kernel.h"
#include "tests/algo/draft.h"

namespace tutti::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// All ranks of one operation.
struct Ranks {
  std::vector<Problem> problems;
  std::vector<Schedule> schedules;

  // Elements of 4 bytes, in segments of 64 bytes: few of them, so that no bound on what is in flight holds any back.
  Ranks(const char* override_text, int size, bool in_place = false, uint64_t count = 32, int root = 0) {
    const Result<Overrides> overrides = parse_overrides(override_text);
    EXPECT_TRUE(overrides.ok()) << overrides.status().message();
    for (const Algorithm* algorithm : overrides.value()) {
      if (algorithm == nullptr) continue;
      for (int rank = 0; rank < size; ++rank) {
        problems.push_back({algorithm->operation, rank, size, root, count, 4, in_place, 64, 2});
        schedules.push_back(build({algorithm, problems.back()}));
      }
    }
  }

  Status check() const { return verify(problems, schedules); }

  // What the verifier says when `change` was made to one rank's schedule.
  Status check_with(size_t rank, const std::function<void(Draft&)>& change) const {
    Draft draft(schedules[rank]);
    change(draft);
    Ranks changed = *this;
    changed.schedules[rank] = draft.schedule();
    return changed.check();
  }
};

const char* const kSamples[] = {"barrier:one_shot",    "barrier:dissemination",
                                "broadcast:linear",    "broadcast:knomial",
                                "broadcast:chain",     "reduce:linear",
                                "reduce:knomial",      "reduce:chain",
                                "all_reduce:one_shot", "all_reduce:recursive_doubling",
                                "all_reduce:linear",   "all_reduce:ring",
                                "all_reduce:knomial",  "reduce_scatter:linear",
                                "reduce_scatter:ring", "scatter:linear",
                                "scatter:knomial",     "gather:linear",
                                "gather:knomial",      "all_gather:linear",
                                "all_gather:ring",     "all_gather:dissemination",
                                "all_to_all:linear"};

// For each sample algorithm, in place and not, for each step of each rank.
void for_each_step(const std::function<void(const Ranks&, size_t rank, size_t step)>& visit) {
  for (const char* sample : kSamples)
    for (const int size : {2, 5})
      for (const bool in_place : {false, true}) {
        const Ranks ranks(sample, size, in_place, std::string_view(sample).starts_with("barrier") ? 0 : 32);
        ASSERT_TRUE(ranks.check().ok()) << ranks.check().message();
        for (size_t rank = 0; rank < ranks.schedules.size(); ++rank)
          for (size_t step = 0; step < ranks.schedules[rank].steps.size(); ++step) {
            SCOPED_TRACE(testing::Message()
                         << sample << " size " << size << " in place " << in_place << " rank " << rank << '\n'
                         << to_text(ranks.schedules[rank]));
            visit(ranks, rank, step);
          }
      }
}

TEST(Verifier, AcceptsWhatIsRightAndNamesWhatIsNot) {
  const Ranks ranks("all_reduce:one_shot", 3);
  EXPECT_TRUE(ranks.check().ok());
  const Status status = ranks.check_with(2, [](Draft& draft) { draft.items[1].step.finish = false; });
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 2: byte 0 of the output holds (0 1 2) at 0"),
                                      HasSubstr("not all ranks' at 0, finished")));
}

TEST(Verifier, EveryStepIsNeeded) {
  for_each_step([](const Ranks& ranks, size_t rank, size_t step) {
    const Status status = ranks.check_with(rank, [&](Draft& draft) { draft.drop(step); });
    EXPECT_FALSE(status.ok()) << "without step " << step;
    EXPECT_THAT(status.message(), testing::StartsWith("rank "));
  });
}

// Takes each dependency out that others do not imply; returns how many there were.
int expect_each_dependency_is_needed(const Ranks& ranks, size_t rank, size_t step, const std::string& message) {
  const Draft draft(ranks.schedules[rank]);
  int dropped = 0;
  for (const size_t before : draft.items[step].after) {
    if (draft.waits_through_others(step, before)) continue;
    ++dropped;
    const Status status =
        ranks.check_with(rank, [&](Draft& changed) { std::erase(changed.items[step].after, before); });
    EXPECT_THAT(status.message(), HasSubstr(message)) << "without the dependency of step " << step << " on " << before;
  }
  return dropped;
}

// In these small samples every dependency is there for the data: the bounds on what is in flight are wider.
TEST(Verifier, EveryDependencyIsNeeded) {
  int dropped = 0;
  for_each_step([&](const Ranks& ranks, size_t rank, size_t step) {
    if (ranks.problems[0].operation == Operation::barrier) return;
    dropped += expect_each_dependency_is_needed(ranks, rank, step, "touches the same bytes as step");
  });
  EXPECT_GT(dropped, 100);
}

TEST(Verifier, EveryDependencyOfABarrierIsNeeded) {
  // With a power of the radix, no rank is heard of twice.
  const Ranks ranks("barrier:dissemination", 8, false, 0);
  int dropped = 0;
  for (size_t step = 0; step < ranks.schedules[3].steps.size(); ++step)
    dropped += expect_each_dependency_is_needed(ranks, 3, step, "may be done before rank");
  EXPECT_EQ(dropped, 1 + 2);
}

TEST(Verifier, LengthsMatter) {
  for_each_step([](const Ranks& ranks, size_t rank, size_t step) {
    if (ranks.schedules[rank].steps[step].slice.bytes == 0) return;
    const Status status = ranks.check_with(rank, [&](Draft& draft) { draft.items[step].step.slice.bytes -= 4; });
    EXPECT_FALSE(status.ok()) << "with step " << step << " shorter";
    EXPECT_THAT(status.message(), HasSubstr(" step "));
  });
}

TEST(Verifier, PlacesMatter) {
  for_each_step([](const Ranks& ranks, size_t rank, size_t step) {
    if (ranks.schedules[rank].steps[step].slice.bytes == 0) return;
    const Status status = ranks.check_with(rank, [&](Draft& draft) { draft.items[step].step.slice.offset += 4; });
    EXPECT_FALSE(status.ok()) << "with step " << step << " elsewhere";
  });
}

TEST(Verifier, FinishMatters) {
  for_each_step([](const Ranks& ranks, size_t rank, size_t step) {
    const Step& reduction = ranks.schedules[rank].steps[step];
    if (reduction.kind != StepKind::reduce || reduction.slice.bytes == 0) return;
    const Status status =
        ranks.check_with(rank, [&](Draft& draft) { draft.items[step].step.finish = !draft.items[step].step.finish; });
    EXPECT_FALSE(status.ok()) << "with the other finish of step " << step;
  });
}

TEST(Verifier, PeersMatter) {
  for_each_step([](const Ranks& ranks, size_t rank, size_t step) {
    const int size = ranks.problems[0].size;
    for (const int wrong : {static_cast<int>(rank), size, -2}) {
      const Status status = ranks.check_with(rank, [&](Draft& draft) {
        for (int32_t& peer : draft.items[step].peers) peer = wrong;
        for (Operand& operand : draft.items[step].operands)
          if (operand.peer != Operand::kLocal) operand.peer = wrong;
      });
      if (ranks.schedules[rank].steps[step].kind == StepKind::copy) {
        EXPECT_TRUE(status.ok());
      } else if (!ranks.schedules[rank].peers_of(ranks.schedules[rank].steps[step]).empty()) {
        EXPECT_THAT(status.message(), HasSubstr("is not another one of"));
      }
    }
  });
}

TEST(Verifier, RanksThatHoldTheSameElementCombineInTheSameOrder) {
  for (const char* sample : {"all_reduce:one_shot", "all_reduce:recursive_doubling"}) {
    const Ranks ranks(sample, 4);
    ASSERT_TRUE(ranks.check().ok());
    for (size_t step = 0; step < ranks.schedules[3].steps.size(); ++step) {
      if (ranks.schedules[3].steps[step].kind != StepKind::reduce) continue;
      const Status status = ranks.check_with(3, [&](Draft& draft) {
        auto& operands = draft.items[step].operands;
        std::swap(operands.front(), operands.back());
      });
      EXPECT_THAT(status.message(), HasSubstr("as rank 0"));
    }
  }
}

TEST(Verifier, PassesAreNotInterchangeable) {
  // (0 1 2) in one pass rounds once for float16, ((0 1) 2) twice.
  Ranks ranks("all_reduce:one_shot", 3);
  Builder builder(ranks.problems[1]);
  const Slice own = builder.input(0, 128), partial = builder.scratch(128);
  builder.send(std::vector<int32_t>{2, 0}, own);
  builder.reduce(std::vector<Operand>{{.peer = 0}, {.slice = own}}, partial, Finish::no);
  builder.reduce(std::vector<Operand>{{.slice = partial}, {.peer = 2}}, builder.output(0, 128), Finish::yes);
  ranks.schedules[1] = builder.take();
  EXPECT_THAT(ranks.check().message(), HasSubstr("holds ((0 1) 2)!, not as rank 0 (0 1 2)!"));
}

TEST(Verifier, ContributionsCountOnce) {
  const Ranks ranks("all_reduce:one_shot", 3);
  EXPECT_THAT(
      ranks
          .check_with(1,
                      [](Draft& draft) {
                        auto& operands = draft.items[1].operands;
                        operands.push_back(operands[1]);
                      })
          .message(),
      AllOf(HasSubstr("rank 1 step 1 reduce"), HasSubstr("operand 1 has a contribution that is there already")));
}

TEST(Verifier, NothingIsFinishedTwice) {
  Ranks ranks("reduce:linear", 2, false, 16);
  Builder root(ranks.problems[0]), other(ranks.problems[1]);
  const Slice own = root.input(0, 64), result = root.output(0, 64);
  root.reduce(std::vector<Operand>{{.slice = own}, {.peer = 1}}, result, Finish::yes);
  root.reduce(std::vector<Operand>{{.slice = result}, {.peer = 1}}, result, Finish::yes);
  for (int i = 0; i < 2; ++i) other.send(0, other.input(0, 64));
  ranks.schedules = {root.take(), other.take()};
  EXPECT_THAT(ranks.check().message(), AllOf(HasSubstr("rank 0 step 1"), HasSubstr("is finished already")));
}

TEST(Verifier, DifferentElementsDoNotMix) {
  Ranks ranks("reduce:linear", 2);
  Builder builder(ranks.problems[0]);
  builder.reduce(std::vector<Operand>{{.slice = builder.input(64, 64)}, {.peer = 1}}, builder.output(0, 64),
                 Finish::yes);
  builder.reduce(std::vector<Operand>{{.slice = builder.input(0, 64)}, {.peer = 1}}, builder.output(64, 64),
                 Finish::yes);
  ranks.schedules[0] = builder.take();
  EXPECT_THAT(ranks.check().message(), AllOf(HasSubstr("rank 0 step 0"), HasSubstr("position 64 with position 0")));
}

TEST(Verifier, InputIsLeftAlone) {
  const Ranks ranks("reduce_scatter:linear", 2);
  EXPECT_THAT(ranks
                  .check_with(0,
                              [](Draft& draft) {
                                for (auto& item : draft.items)
                                  if (item.step.kind == StepKind::reduce) item.step.slice.buffer = Buffer::input;
                              })
                  .message(),
              AllOf(HasSubstr("rank 0 step"), HasSubstr("writes input")));
  // In place, the rank's own block is output; the others are not.
  Ranks shared("reduce_scatter:linear", 2, true);
  EXPECT_THAT(shared
                  .check_with(0,
                              [](Draft& draft) {
                                for (auto& item : draft.items)
                                  if (item.step.kind == StepKind::reduce) item.step.slice.offset += 128;
                              })
                  .message(),
              HasSubstr("writes input"));
  // The root of a broadcast only reads.
  const Ranks broadcast("broadcast:linear", 2);
  EXPECT_THAT(broadcast
                  .check_with(0,
                              [](Draft& draft) {
                                Draft::Item item = draft.items[0];
                                item.step.kind = StepKind::copy;
                                item.peers.clear();
                                item.step.slice = {Buffer::output, 0, 4};
                                item.step.source = {Buffer::output, 4, 4};
                                item.after = {0};
                                draft.items.push_back(item);
                              })
                  .message(),
              HasSubstr("writes the root's own buffer"));
}

TEST(Verifier, BuffersEnd) {
  const Ranks ranks("all_reduce:recursive_doubling", 5);
  EXPECT_THAT(ranks.check_with(0, [](Draft& draft) { draft.scratch_bytes -= 1; }).message(),
              AllOf(HasSubstr("rank 0 step"), HasSubstr("passes the end of a buffer of")));
  // Where input and output are one, there is only one name.
  const Ranks shared("all_reduce:ring", 2, true);
  EXPECT_THAT(shared.check_with(1, [](Draft& draft) { draft.items[0].step.slice.buffer = Buffer::input; }).message(),
              AllOf(HasSubstr("rank 1 step 0"), HasSubstr("passes the end of a buffer of 0 bytes")));
}

TEST(Verifier, ScratchIsBounded) {
  const Ranks ranks("broadcast:linear", 2);
  EXPECT_TRUE(ranks.check_with(1, [](Draft& draft) { draft.scratch_bytes = 2 * 128 + 64; }).ok());
  EXPECT_THAT(ranks.check_with(1, [](Draft& draft) { draft.scratch_bytes = 2 * 128 + 65; }).message(),
              HasSubstr("rank 1: asks for 321 bytes of scratch, more than the 320 allowed"));
}

TEST(Verifier, UnwrittenMemoryIsNotRead) {
  const Ranks ranks("broadcast:chain", 3);
  EXPECT_THAT(ranks
                  .check_with(1,
                              [](Draft& draft) {
                                draft.scratch_bytes = 64;
                                for (auto& item : draft.items)
                                  if (item.step.kind == StepKind::send)
                                    item.step.slice = {Buffer::scratch, 0, item.step.slice.bytes};
                              })
                  .message(),
              AllOf(HasSubstr("rank 1 step 1 send"), HasSubstr("sends bytes that were never written")));
}

TEST(Verifier, RanksThatWaitForEachOtherAreFound) {
  // In place, both offer the buffer that the result goes to.
  Ranks ranks("all_reduce:one_shot", 2, true);
  for (size_t rank = 0; rank < 2; ++rank) {
    Builder builder(ranks.problems[rank]);
    const Slice own = builder.input(0, 128);
    const auto peer = static_cast<int32_t>(1 - rank);
    builder.send(peer, own);
    std::vector<Operand> operands{{.slice = own}, {.peer = peer}};
    if (rank == 1) std::swap(operands[0], operands[1]);
    builder.reduce(operands, own, Finish::yes);
    ranks.schedules[rank] = builder.take();
  }
  EXPECT_THAT(ranks.check().message(), AllOf(HasSubstr("rank 0 step 0 send"), HasSubstr("deadlock")));
}

TEST(Verifier, MessagesArePaired) {
  const Ranks ranks("broadcast:linear", 3);
  const auto twice = [](Draft& draft) { draft.items.push_back(draft.items[0]); };
  EXPECT_THAT(ranks.check_with(0, twice).message(),
              AllOf(HasSubstr("rank 0 step 1 send"), HasSubstr("rank 1 takes fewer messages")));
  EXPECT_THAT(ranks
                  .check_with(2,
                              [&](Draft& draft) {
                                twice(draft);
                                draft.items[1].after = {0};
                              })
                  .message(),
              AllOf(HasSubstr("rank 2 step 1 recv"), HasSubstr("rank 0 sends fewer messages")));
  EXPECT_THAT(ranks.check_with(2, [](Draft& draft) { draft.items[0].step.slice.bytes = 64; }).message(),
              HasSubstr("rank 2 step 0 recv from 0 -> output[0,64): takes 64 bytes where rank 0 step 0 sends 128"));
}

TEST(Verifier, PairsExchangeABoundedNumberOfMessages) {
  for (const uint64_t messages : {kMaxMessagesPerPair, kMaxMessagesPerPair + 1}) {
    std::vector<Problem> problems{{.operation = Operation::broadcast, .rank = 0, .size = 2},
                                  {.operation = Operation::broadcast, .rank = 1, .size = 2}};
    Builder from(problems[0]), to(problems[1]);
    for (uint64_t i = 0; i < messages; ++i) {
      from.send(1, {});
      to.recv(0, {});
    }
    const Status status = verify(problems, std::vector{from.take(), to.take()});
    EXPECT_EQ(status.ok(), messages == kMaxMessagesPerPair);
    if (!status.ok()) {
      EXPECT_THAT(status.message(), HasSubstr("rank 0 step 65535"));
    }
  }
}

TEST(Verifier, OperandsAreBounded) {
  Ranks ranks("reduce:linear", kMaxOperands + 2, false, 1);
  EXPECT_TRUE(ranks.check().ok());
  const Status status = ranks.check_with(0, [](Draft& draft) {
    auto& first = draft.items[0].operands;
    first.push_back(first.back());
  });
  EXPECT_THAT(status.message(), HasSubstr("has 65 operands, allowed are 1 to 64"));
}

TEST(Verifier, GraphsAreWellFormed) {
  Ranks ranks("all_reduce:linear", 2);
  Ranks backward = ranks, miscounted = ranks;
  backward.schedules[1].successors[0] = 0;
  EXPECT_THAT(backward.check().message(), AllOf(HasSubstr("rank 1 step"), HasSubstr("is not a later step")));
  ++miscounted.schedules[1].steps[2].dependency_count;
  EXPECT_THAT(miscounted.check().message(), AllOf(HasSubstr("rank 1 step 2"), HasSubstr("counts 2 dependencies")));
}

TEST(Verifier, BarriersWaitForAll) {
  // Rank 2 tells nobody but rank 0 that it has begun, and rank 1 is told nothing.
  const Ranks ranks("barrier:dissemination", 3, false, 0);
  Ranks open = ranks;
  for (size_t rank = 0; rank < 3; ++rank) {
    Builder builder(ranks.problems[rank]);
    const auto next = static_cast<int32_t>((rank + 1) % 3), last = static_cast<int32_t>((rank + 2) % 3);
    builder.send(next, {});
    builder.recv(last, {});
    open.schedules[rank] = builder.take();
  }
  EXPECT_THAT(open.check().message(), HasSubstr("rank 0 may be done before rank 1 has begun"));
}

}  // namespace
}  // namespace tutti::internal
