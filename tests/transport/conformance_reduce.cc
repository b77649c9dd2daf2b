// Receive-reduce: operands from peers and from local memory, in order and in one pass.
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

std::vector<uint64_t> numbers(size_t count, uint64_t seed) {
  std::vector<uint64_t> made(count);
  fill(std::as_writable_bytes(std::span(made)), seed);
  return made;
}

TEST_P(Conformance, AReductionCombinesMessagesAndLocalMemoryInOrder) {
  const auto world = connected(3);
  const uint64_t a = 1;
  const uint64_t b = 2;
  const uint64_t own = 3;
  uint64_t result = 0;
  (*world)[1].send(1, 0, 7, &a, sizeof a);
  (*world)[2].send(1, 0, 8, &b, sizeof b);
  const std::array<ReduceOperand, 3> operands{{{{2, 8}, nullptr}, {{}, &own}, {{1, 7}, nullptr}}};
  const Ticket reduced = (*world)[0].reduce(1, operands, &result, 1, kDigits);
  EXPECT_EQ((*world)[0].wait(reduced).code, Code::ok);
  EXPECT_EQ(result, (2u * 31 + 3) * 31 + 1);
}

// One reduction at rank 0: operand i is a message of rank i+1 where bit i of `remote` is set, else local memory.
struct Case {
  int operand_count;
  uint32_t remote;
  size_t elements;
  int dst_operand;          // the local operand that dst is; -1: memory of its own
  bool windows;             // messages are sent from windows
  uint32_t messages_first;  // bit i: operand i is sent before the reduction is posted
};

class ReduceCase {
 public:
  ReduceCase(World& world, const Case& what, uint64_t match) : world_(world), case_(what), match_(match) {
    for (int i = 0; i < what.operand_count; ++i) {
      inputs_.push_back(numbers(what.elements, match * 100 + static_cast<uint64_t>(i)));
      memory_.push_back(place(i));
    }
    expected_ = inputs_[0];
    for (int i = 1; i < what.operand_count; ++i)
      for (size_t k = 0; k < what.elements; ++k) expected_[k] = add_digit(expected_[k], inputs_[at(i)][k]);
    own_.assign(what.elements + 2, kMark);
  }
  ~ReduceCase() {
    for (int i = 0; i < case_.operand_count; ++i)
      if (is_window(i)) {
        EXPECT_TRUE(world_[i + 1].transport().release(memory_[at(i)]).ok());
      }
  }

  void run() {
    std::vector<std::pair<int, Ticket>> sent;
    const auto send = [&](bool first) {
      for (int i = 0; i < case_.operand_count; ++i)
        if (is_remote(i) && ((case_.messages_first >> i & 1) != 0) == first)
          sent.emplace_back(i + 1,
                            world_[i + 1].send(9, 0, match_ + static_cast<uint64_t>(i), memory_[at(i)], bytes()));
    };
    send(true);
    if (match_ % 3 == 0) world_.settle();
    std::vector<ReduceOperand> operands;
    for (int i = 0; i < case_.operand_count; ++i)
      operands.push_back(is_remote(i) ? ReduceOperand{{i + 1, match_ + static_cast<uint64_t>(i)}, nullptr}
                                      : ReduceOperand{{}, memory_[at(i)]});
    void* const dst = case_.dst_operand >= 0 ? memory_[at(case_.dst_operand)] : &own_[1];
    pass_count = {};
    const Ticket reduced = world_[0].reduce(9, operands, dst, case_.elements, kDigits);
    operands.clear();  // read during the call only
    send(false);
    EXPECT_EQ(world_[0].wait(reduced).code, Code::ok);
    for (const auto& [rank, ticket] : sent) EXPECT_EQ(world_[rank].wait(ticket).code, Code::ok);
    check(dst);
  }

 private:
  static constexpr uint64_t kMark = 0x5a5a5a5a5a5a5a5a;
  static size_t at(int i) { return static_cast<size_t>(i); }
  bool is_remote(int i) const { return (case_.remote >> i & 1) != 0; }
  bool is_window(int i) const { return is_remote(i) && case_.windows && case_.elements > 0; }
  size_t bytes() const { return case_.elements * sizeof(uint64_t); }

  void* place(int i) {
    if (!is_window(i)) {
      copies_.push_back(inputs_[at(i)]);
      return copies_.back().data();
    }
    auto window = world_[i + 1].transport().allocate(bytes());
    if (!window) throw std::runtime_error(window.status().message());
    return std::memcpy(*window, inputs_[at(i)].data(), bytes());
  }
  void check(const void* dst) {
    EXPECT_EQ(case_.elements == 0 || std::memcmp(dst, expected_.data(), bytes()) == 0, true) << "wrong result";
    if (case_.dst_operand < 0) {
      EXPECT_EQ(own_.front(), kMark);
      EXPECT_EQ(own_.back(), kMark);
    }
    EXPECT_EQ(pass_count.elements, case_.elements) << "not one pass";
    if (case_.elements == 0) return;
    EXPECT_EQ(pass_count.fewest_operands, case_.operand_count);
    EXPECT_EQ(pass_count.most_operands, case_.operand_count);
  }

  World& world_;
  const Case case_;
  const uint64_t match_;
  std::vector<std::vector<uint64_t>> inputs_;
  std::vector<std::vector<uint64_t>> copies_;
  std::vector<void*> memory_;
  std::vector<uint64_t> expected_;
  std::vector<uint64_t> own_;
};

TEST_P(Conformance, EveryMixOfOperandsIsReducedInOrderAndInOnePass) {
  const auto world = connected(9);
  constexpr std::array<size_t, 6> kElements{1, 5, 6, 8, 513, 0};
  uint64_t match = 0;
  for (int count = 1; count <= 8; ++count)
    for (uint32_t remote = 1; remote < 1u << count; ++remote)
      for (int dst = -1; dst < count; ++dst) {
        if (dst >= 0 && (remote >> dst & 1) != 0) continue;
        match += 16;
        const size_t elements = kElements[match / 16 % kElements.size()];
        const Case what{
            count, remote, elements, dst, match / 16 % 4 == 0, static_cast<uint32_t>(match * 2654435761u >> 7)};
        SCOPED_TRACE(::testing::Message() << count << " operands, remote " << remote << ", dst " << dst << ", "
                                          << elements << " elements, match " << match);
        ReduceCase(*world, what, match).run();
        if (HasFailure()) return;
      }
}

TEST_P(Conformance, ReductionsOfEverySizeAreRight) {
  const auto world = connected(9);
  std::mt19937_64 random = seeded();
  uint64_t match = 0;
  for (const size_t bytes :
       {0u, 8u, 32u, 40u, 48u, 64u, 72u, 4096u, 4104u, 65528u, 65536u, 65544u, 524288u, 524296u, 1048584u, 4194312u})
    for (const int count : {1, 2, 3, 8})
      for (const bool windows : {false, true})
        for (int repetition = 0; repetition < 2; ++repetition) {
          match += 16;
          const uint32_t all = (1u << count) - 1;
          const auto remote = static_cast<uint32_t>(random() % all + 1);
          int dst = static_cast<int>(random() % static_cast<size_t>(count + 1)) - 1;
          if (dst >= 0 && (remote >> dst & 1) != 0) dst = -1;
          const Case what{count, remote, bytes / 8, dst, windows, static_cast<uint32_t>(random())};
          SCOPED_TRACE(::testing::Message() << bytes << " bytes, " << count << " operands, remote " << remote
                                            << ", dst " << dst << ", windows " << windows);
          ReduceCase(*world, what, match).run();
          if (HasFailure()) return;
        }
}

// As many operands as a reduction may have, several of them from the same peer.
TEST_P(Conformance, TheMostOperandsAreTaken) {
  const auto world = connected(4);
  for (const size_t elements : {1u, 100u, 20'000u}) {
    std::vector<std::vector<uint64_t>> inputs;
    std::vector<ReduceOperand> operands;
    for (int i = 0; i < kMaxOperands; ++i) {
      inputs.push_back(numbers(elements, static_cast<uint64_t>(i)));
      if (i % 4 == 0)
        operands.push_back({{}, inputs.back().data()});
      else
        operands.push_back({{i % 4, elements * 100 + static_cast<uint64_t>(i)}, nullptr});
    }
    std::vector<uint64_t> expected = inputs[0];
    for (int i = 1; i < kMaxOperands; ++i)
      for (size_t k = 0; k < elements; ++k) expected[k] = add_digit(expected[k], inputs[static_cast<size_t>(i)][k]);
    std::vector<uint64_t> result(elements);
    const Ticket reduced = (*world)[0].reduce(1, operands, result.data(), elements, kDigits);
    std::vector<std::pair<int, Ticket>> sent;
    for (int i = kMaxOperands - 1; i >= 0; --i)
      if (i % 4 != 0)
        sent.emplace_back(i % 4, (*world)[i % 4].send(1, 0, elements * 100 + static_cast<uint64_t>(i),
                                                      inputs[static_cast<size_t>(i)].data(), elements * 8));
    EXPECT_EQ((*world)[0].wait(reduced).code, Code::ok);
    for (const auto& [rank, ticket] : sent) EXPECT_EQ((*world)[rank].wait(ticket).code, Code::ok);
    EXPECT_EQ(result, expected);
  }
}

TEST_P(Conformance, TheDivisorIsHandedToTheKernel) {
  const auto world = connected(2);
  for (const size_t elements : {1u, 1000u, 100'000u}) {
    const auto own = numbers(elements, 1);
    const auto other = numbers(elements, 2);
    std::vector<uint64_t> result(elements);
    const Ticket sent = (*world)[1].send(1, 0, elements, other.data(), elements * 8);
    const std::array<ReduceOperand, 2> operands{{{{}, own.data()}, {{1, elements}, nullptr}}};
    const Ticket reduced =
        (*world)[0].reduce(1, operands, result.data(), elements, {digits_kernel, sizeof(uint64_t), 7});
    EXPECT_EQ((*world)[0].wait(reduced).code, Code::ok);
    EXPECT_EQ((*world)[1].wait(sent).code, Code::ok);
    for (size_t k = 0; k < elements; ++k) ASSERT_EQ(result[k], add_digit(own[k], other[k]) / 7);
  }
}

// Peers that read each other's memory while they reduce into it in the other half: what a ring does.
TEST_P(Conformance, BothEndsReduceFromEachOtherAtOnce) {
  const auto world = connected(2);
  for (const bool window : {false, true})
    for (const size_t half : {1u, 6u, 3000u, 200'000u}) {
      std::array<std::vector<uint64_t>, 2> heaps;
      std::array<uint64_t*, 2> memory{};
      for (int rank = 0; rank < 2; ++rank) {
        const auto r = static_cast<size_t>(rank);
        heaps[r] = numbers(2 * half, r);
        memory[r] = heaps[r].data();
        if (!window) continue;
        auto made = (*world)[rank].transport().allocate(16 * half);
        ASSERT_TRUE(made.ok()) << made.status().message();
        memory[r] = static_cast<uint64_t*>(std::memcpy(*made, heaps[r].data(), 16 * half));
      }
      const auto before = std::array{numbers(2 * half, 0), numbers(2 * half, 1)};
      std::array<Ticket, 2> sent{};
      std::array<Ticket, 2> reduced{};
      for (int rank = 0; rank < 2; ++rank) {
        const auto r = static_cast<size_t>(rank);
        const size_t given = rank == 0 ? half : 0;  // rank 0 sends its upper half, rank 1 its lower
        const size_t kept = half - given;
        sent[r] = (*world)[rank].send(2, 1 - rank, half + window, memory[r] + given, 8 * half);
        const std::array<ReduceOperand, 2> operands{{{{1 - rank, half + window}, nullptr}, {{}, memory[r] + kept}}};
        reduced[r] = (*world)[rank].reduce(2, operands, memory[r] + kept, half, kDigits);
      }
      for (int rank = 0; rank < 2; ++rank) {
        const auto r = static_cast<size_t>(rank);
        EXPECT_EQ((*world)[rank].wait(reduced[r]).code, Code::ok);
        EXPECT_EQ((*world)[rank].wait(sent[r]).code, Code::ok);
        const size_t kept = rank == 0 ? 0 : half;
        for (size_t k = kept; k < kept + half; ++k)
          ASSERT_EQ(memory[r][k], add_digit(before[1 - r][k], before[r][k])) << "element " << k << " of rank " << rank;
        if (window) {
          EXPECT_TRUE((*world)[rank].transport().release(memory[r]).ok());
        }
      }
    }
}

}  // namespace
}  // namespace tutti::internal::conformance
