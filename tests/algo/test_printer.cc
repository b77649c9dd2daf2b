// Schedules as text and as drawings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algo/builder.h"
#include "algo/selector.h"

namespace tutti::internal {
namespace {

Schedule sample() {
  Builder builder({.operation = Operation::all_reduce, .rank = 0, .size = 3, .count = 4});
  builder.send(std::vector<int32_t>{1, 2}, builder.input(0, 4));
  builder.recv(2, builder.scratch(4));
  builder.reduce(std::vector<Operand>{{.slice = {Buffer::scratch, 0, 4}}, {.peer = 1}}, builder.output(0, 4),
                 Finish::yes);
  builder.copy(builder.input(0, 2), builder.output(2, 2));
  return builder.take();
}

TEST(Printer, Text) {
  EXPECT_EQ(to_text(sample()),
            "0 send input[0,4) -> 1 2\n"
            "1 recv from 2 -> scratch[0,4)\n"
            "2 reduce scratch[0,4) from 1 -> output[0,4) finish  after 1\n"
            "3 copy input[0,2) -> output[2,4)  after 2\n");
  EXPECT_EQ(to_text(sample(), 1), "1 recv from 2 -> scratch[0,4)");
  EXPECT_EQ(to_text(Schedule{}), "");
}

TEST(Printer, Dot) {
  EXPECT_EQ(to_dot(sample(), "a \"quoted\" title"),
            "digraph schedule {\n"
            "  label=\"a \\\"quoted\\\" title\";\n"
            "  node [shape=box];\n"
            "  s0 [label=\"0 send input[0,4) -> 1 2\"];\n"
            "  s1 [label=\"1 recv from 2 -> scratch[0,4)\"];\n"
            "  s2 [label=\"2 reduce scratch[0,4) from 1 -> output[0,4) finish\"];\n"
            "  s3 [label=\"3 copy input[0,2) -> output[2,4)\"];\n"
            "  s1 -> s2;\n"
            "  s2 -> s3;\n"
            "}\n");
}

TEST(Printer, TwoRanksInHalves) {
  // The schedule of docs and of the first real job: a send, a reduction, the result's way, and the other half.
  const Problem problem{.operation = Operation::all_reduce, .rank = 0, .size = 2, .count = 32, .element_bytes = 4};
  const auto overrides = parse_overrides("all_reduce:linear");
  ASSERT_TRUE(overrides.ok());
  EXPECT_EQ(to_text(build(select(problem, kSharedMemory, overrides.value()))),
            "0 send input[64,128) -> 1\n"
            "1 reduce input[0,64) from 1 -> output[0,64) finish\n"
            "2 send output[0,64) -> 1  after 1\n"
            "3 recv from 1 -> output[64,128)\n");
}

}  // namespace
}  // namespace tutti::internal
