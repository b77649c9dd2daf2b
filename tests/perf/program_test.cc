// tutti-perf as a user starts it: what it prints and writes, and what it says when it cannot do what was asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ran.h"

namespace tutti::perf {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// TUTTI_PERF is the program's path, given by CMake.
constexpr const char* kPerf = TUTTI_PERF;

Ran perf(int ranks, const std::string& arguments) { return run_ranks(ranks, std::string(kPerf) + " " + arguments); }

std::vector<json> rows(int ranks, const std::string& arguments) {
  return json_rows(ranks, std::string(kPerf) + " " + arguments);
}

TEST(Program, PrintsOneRowASizeAndNoProgressIntoAPipe) {
  const Ran ran = perf(2, "all_reduce -b 8 -e 512 -f 4 -n 5 -c");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto table = table_of(ran.out);
  ASSERT_EQ(table.size(), 5U) << ran.out;
  EXPECT_EQ(table[0], (std::vector<std::string>{"bytes", "count", "type", "op", "root", "algorithm", "min", "p50",
                                                "p99", "algbw", "busbw", "wrong"}));
  const std::vector<std::string> sizes = {"8", "32", "128", "512"};
  for (size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_EQ(table[i + 1].size(), 12U) << ran.out;
    EXPECT_EQ(table[i + 1][0], sizes[i]);
    EXPECT_EQ(table[i + 1][11], "0");
  }
  EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("\r")));
}

TEST(Program, SaysThatRanksShareProcessors) {
  const std::string one_processor = "taskset -c " + std::to_string(sched_getcpu()) + " ";
  const auto run_on_it = [&](int ranks) {
    return shell(one_processor + TUTTI_RUN + " -n " + std::to_string(ranks) + " " + kPerf + " barrier -n 5");
  };
  EXPECT_THAT(run_on_it(2).out, HasSubstr("# more ranks than processors: times include the wait for one\n"));
  const Ran alone = run_on_it(1);
  EXPECT_EQ(alone.status, 0) << alone.err;
  EXPECT_THAT(alone.out, Not(HasSubstr("more ranks than processors")));
}

TEST(Program, ShowsAProgressLineOnATerminal) {
  // script makes a terminal for what it runs.
  const Ran ran =
      shell("script -qec '" + std::string(TUTTI_RUN) + " -n 2 " + kPerf + " all_reduce -b 8 -e 16 -n 5' /dev/null");
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("\r\033[K1 of 2 sizes done, measuring 16 bytes"));
}

TEST(Program, JsonRowsHaveTheColumnsAndWhereTheyComeFrom) {
  const auto all = rows(3, "reduce -b 1K -e 2K -n 5 -d int32 -o max -r 1 -c");
  ASSERT_EQ(all.size(), 2U);
  const json& row = all[1];
  EXPECT_EQ(row["bytes"], 2048);
  EXPECT_EQ(row["count"], 512);
  EXPECT_EQ(row["type"], "int32");
  EXPECT_EQ(row["op"], "max");
  EXPECT_EQ(row["root"], 1);
  EXPECT_FALSE(row["algorithm"].get<std::string>().empty());
  EXPECT_EQ(row["ranks"], 3);
  EXPECT_EQ(row["wrong"], 0);
  EXPECT_EQ(row["iterations"], 5);
  for (const char* name : {"transport", "host", "version"}) EXPECT_FALSE(row[name].get<std::string>().empty()) << name;
  EXPECT_TRUE(row["cores_shared"].is_boolean());
  EXPECT_GT(row["machine"]["core_count"], 0);
  EXPECT_LE(row["min"], row["p50"]);
  EXPECT_LE(row["p50"], row["p99"]);
  EXPECT_GT(row["loop"], 0);
  EXPECT_DOUBLE_EQ(row["algbw"].get<double>(), 2048 / row["p50"].get<double>() / 1000);
  EXPECT_DOUBLE_EQ(row["busbw"].get<double>(), row["algbw"].get<double>());
}

TEST(Program, EveryOperationIsMeasuredAndRight) {
  for (const char* operation : {"broadcast", "reduce", "all_reduce", "scatter", "gather", "all_gather",
                                "reduce_scatter", "all_to_all", "send_recv"}) {
    for (const char* form : {"", "--memory window", "--in-place", "--async --in-place --memory window"}) {
      if (std::string(operation) == "send_recv" && *form != '\0') continue;
      for (const json& row : rows(3, std::string(operation) + " -b 8 -e 1M -f 64 -n 3 -w 1 -r 2 -c " + form))
        EXPECT_EQ(row["wrong"], 0) << operation << " " << form << " " << row;
    }
  }
}

TEST(Program, ABarrierHasOneRowAndNoBytes) {
  const auto all = rows(2, "barrier -n 10 -c");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["bytes"], 0);
  EXPECT_TRUE(all[0]["algbw"].is_null() && all[0]["busbw"].is_null() && all[0]["wrong"].is_null());
  EXPECT_GT(all[0]["p50"], 0);
}

const std::vector<std::string> kIntegers = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"};
const std::vector<std::string> kFloats = {"float16", "bfloat16", "float32", "float64"};

TEST(Program, EveryTypeAndOperatorIsRight) {
  std::vector<std::string> types = kIntegers;
  types.insert(types.end(), kFloats.begin(), kFloats.end());
  for (const std::string& type : types) {
    std::vector<std::string> ops = {"sum", "product", "min", "max", "average"};
    if (std::find(kIntegers.begin(), kIntegers.end(), type) != kIntegers.end())
      ops.insert(ops.end(), {"bit_and", "bit_or", "bit_xor"});
    for (const std::string& op : ops)
      for (const json& row : rows(3, "all_reduce -b 1K -e 32K -f 32 -n 3 -w 1 -c -d " + type + " -o " + op))
        EXPECT_EQ(row["wrong"], 0) << type << " " << op << " " << row;
  }
}

TEST(Program, AFlippedBitIsWrongInEveryType) {
  std::vector<std::string> types = kIntegers;
  types.insert(types.end(), kFloats.begin(), kFloats.end());
  for (const std::string& type : types) {
    const Ran ran = perf(2, "all_reduce -b 16 -e 16 -n 3 -c --flip-bit 1 -d " + type);
    EXPECT_EQ(ran.status, 1) << type;
    EXPECT_THAT(ran.err, HasSubstr("rank 1: wrong: call 1, output element ")) << type;
    EXPECT_THAT(ran.err, HasSubstr("elements are wrong")) << type;
  }
}

TEST(Program, AUsageErrorIsSaidOnceByManyRanks) {
  const Ran ran = perf(3, "all_reduce -b 8 -e 4");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(count_of(ran.err, "--max-bytes: 4 is below --min-bytes 8"), 1U) << ran.err;
  const Ran root = perf(3, "broadcast -r 3 -n 3");
  EXPECT_EQ(root.status, 2);
  EXPECT_EQ(count_of(root.err, "--root: 3 is no rank of this world of 3 (0 to 2)"), 1U) << root.err;
}

TEST(Program, MoreThanTheMemoryIsAUsageError) {
  const Ran ran = perf(2, "all_reduce -b 1048576G -e 1048576G");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(count_of(ran.err, "GiB available: lower --max-bytes"), 1U) << ran.err;
}

TEST(Program, AnUnknownAlgorithmIsRefusedWithTheValidNames) {
  const Ran ran = perf(2, "all_reduce -n 3 -e 8 --algorithm rign");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, StartsWith("tutti-perf: "));
  EXPECT_THAT(ran.err, HasSubstr("rign"));
  EXPECT_THAT(ran.err, HasSubstr("ring"));
  EXPECT_EQ(ran.err.find("tutti-perf:"), ran.err.rfind("tutti-perf:")) << "said once: " << ran.err;
}

TEST(Program, AForcedAlgorithmIsTaken) {
  for (const json& row : rows(3, "all_reduce -b 8 -e 8K -f 32 -n 3 -c --algorithm ring")) {
    EXPECT_EQ(row["algorithm"], "ring");
    EXPECT_EQ(row["wrong"], 0);
  }
}

TEST(Program, AloneItSaysSoLoudlyAndShowsNoBusBandwidth) {
  const std::string clean = "env -u RANK -u WORLD_SIZE -u LOCAL_RANK -u MASTER_ADDR -u MASTER_PORT ";
  const Ran alone = shell(clean + kPerf + " all_reduce -b 8 -e 8 -n 3 -c");
  EXPECT_EQ(alone.status, 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("WARNING: world size 1"));
  EXPECT_THAT(alone.out, HasSubstr("n/a"));
  // Half of a launcher's variables is no world of one: it is refused, or said.
  const Ran half = shell(clean + "RANK=0 " + kPerf + " all_reduce -b 8 -e 8 -n 3");
  EXPECT_THAT(half.err, ::testing::AnyOf(HasSubstr("WORLD_SIZE"), HasSubstr("world size 1")));
}

TEST(Program, AJsonFileThatCannotBeWrittenIsTold) {
  const Ran ran = perf(2, "all_reduce -b 8 -e 8 -n 3 --json /nowhere/rows.json");
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("--json: cannot write '/nowhere/rows.json': No such file or directory"));
}

TEST(Program, JsonOntoStdoutIsInPlaceOfTheTable) {
  const Ran ran = perf(2, "all_reduce -b 8 -e 16 -n 3 --json -");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto all = json_lines(ran.out);
  ASSERT_EQ(all.size(), 2U) << ran.out;
  EXPECT_EQ(all[1]["bytes"], 16);
}

}  // namespace
}  // namespace tutti::perf
