// What tutti-perf calls wrong: nothing when the result is right, exactly one element when one bit of it is not.
#include "exercise.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace tutti::perf {
namespace {

constexpr size_t kCount = 5000;

Options options_for(const char* operation, tutti_type type, tutti_op op = TUTTI_SUM) {
  Options options;
  options.operation = find_operation(operation);
  options.type = type;
  options.op = op;
  return options;
}

// Memory from malloc belongs to no world, so these need none.
tutti_group* const kNoGroup = nullptr;

TEST(Exercise, FindsOneFlippedBitInAnyTypeAndOperator) {
  for (int type = TUTTI_INT8; type <= TUTTI_FLOAT64; ++type) {
    for (int op = TUTTI_SUM; op <= (type < TUTTI_FLOAT16 ? TUTTI_BIT_XOR : TUTTI_AVERAGE); ++op) {
      const Options options = options_for("all_reduce", static_cast<tutti_type>(type), static_cast<tutti_op>(op));
      const Place place = {1, 3};
      const Buffers buffers(kNoGroup, options, place, kCount);
      const Exercise exercise(options, place, kCount, buffers);
      // What a right library leaves.
      const Pattern pattern(options.type, options.op, place.size, true);
      for (const uint64_t call : {1U, 2U, 3U}) {
        std::string first;
        exercise.fill(call);
        EXPECT_GT(exercise.count_wrong(call, &first), kCount / 2) << "nothing was written";
        pattern.combined(call, 0, {buffers.output(), kCount * pattern.element_bytes()});
        EXPECT_EQ(exercise.count_wrong(call, &first), 0U) << first;
        exercise.flip_bit(call);
        first.clear();
        EXPECT_EQ(exercise.count_wrong(call, &first), 1U)
            << tutti_type_name(options.type) << " " << tutti_op_name(options.op);
        EXPECT_NE(first, "");
        EXPECT_GT(exercise.count_wrong(call + 1, &first), kCount / 2) << "the result of another call passes";
      }
    }
  }
}

// Runs `operation` among ranks of this process, as its definition says, on what each has put in.
void run_by_definition(std::vector<Exercise>& ranks, size_t element) {
  const auto size = ranks.size();
  const size_t block = ranks[0].call().count * element;
  const auto at = [](void* base, size_t offset) { return static_cast<std::byte*>(base) + offset; };
  std::vector<std::vector<std::byte>> inputs;
  const bool wide = ranks[0].call().operation->wide_input;
  const auto root = static_cast<size_t>(ranks[0].call().root);
  for (size_t r = 0; r < size; ++r) {
    const bool has = ranks[r].call().operation->kind != Kind::scatter || r == root;
    const auto* from = static_cast<const std::byte*>(ranks[r].call().input);
    inputs.emplace_back(from, from + (has ? block * (wide ? size : 1) : 0));
  }
  for (size_t me = 0; me < size; ++me) {
    void* const output = ranks[me].call().output;
    switch (ranks[me].call().operation->kind) {
      case Kind::broadcast: std::memcpy(output, inputs[root].data(), block); break;
      case Kind::scatter: std::memcpy(output, inputs[root].data() + me * block, block); break;
      case Kind::send_recv: std::memcpy(output, inputs[(me + size - 1) % size].data(), block); break;
      case Kind::all_to_all:
        for (size_t r = 0; r < size; ++r) std::memcpy(at(output, r * block), inputs[r].data() + me * block, block);
        break;
      case Kind::gather:
        if (me != root) break;
        [[fallthrough]];
      case Kind::all_gather:
        for (size_t r = 0; r < size; ++r) std::memcpy(at(output, r * block), inputs[r].data(), block);
        break;
      default: FAIL() << "reduces";
    }
  }
}

TEST(Exercise, ExpectsOfEachOperationWhatItsDefinitionSays) {
  for (const char* operation : {"broadcast", "scatter", "gather", "all_gather", "all_to_all", "send_recv"}) {
    for (const bool in_place : {false, true}) {
      Options options = options_for(operation, TUTTI_FLOAT32);
      options.in_place = in_place && options.operation->kind != Kind::send_recv;
      options.root = 2;
      std::vector<Exercise> ranks;
      std::vector<std::unique_ptr<Buffers>> buffers;
      for (int rank = 0; rank < 4; ++rank) {
        buffers.push_back(std::make_unique<Buffers>(kNoGroup, options, Place{rank, 4}, 1000));
        ranks.emplace_back(options, Place{rank, 4}, 1000, *buffers.back());
      }
      for (const Exercise& exercise : ranks) exercise.fill(11);
      run_by_definition(ranks, sizeof(float));
      for (const Exercise& exercise : ranks) {
        std::string first;
        EXPECT_EQ(exercise.count_wrong(11, &first), 0U) << operation << (in_place ? " in place: " : ": ") << first;
      }
    }
  }
}

TEST(Exercise, InPlaceMeansWhatTheHeaderSays) {
  const auto call_of = [](const char* operation, Place place, const Buffers& buffers, const Options& base) {
    Options options = base;
    options.operation = find_operation(operation);
    return Exercise(options, place, 10, buffers).call();
  };
  for (const char* operation : {"all_reduce", "all_to_all", "all_gather", "reduce_scatter", "scatter", "gather"}) {
    Options options = options_for(operation, TUTTI_INT16);
    options.in_place = true;
    options.root = 3;
    const Place root = {3, 4};
    const Buffers buffers(kNoGroup, options, root, 10);
    const Call call = call_of(operation, root, buffers, options);
    const auto* input = static_cast<const std::byte*>(call.input);
    const auto* output = static_cast<const std::byte*>(call.output);
    const ptrdiff_t own = 3 * 10 * 2;
    const std::string name = operation;
    const ptrdiff_t expected = name == "all_gather" || name == "gather"        ? own
                               : name == "reduce_scatter" || name == "scatter" ? -own
                                                                               : 0;
    EXPECT_EQ(input - output, expected) << operation;
  }
}

}  // namespace
}  // namespace tutti::perf
