// tutti-p2p as a user starts it: what it prints and writes, and what it says when it cannot do what was asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ran.h"

namespace tutti::perf {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// TUTTI_P2P is the program's path, given by CMake.
Ran p2p(int ranks, const std::string& arguments) { return run_ranks(ranks, std::string(TUTTI_P2P) + " " + arguments); }

std::vector<json> rows(const std::string& arguments) { return json_rows(2, std::string(TUTTI_P2P) + " " + arguments); }

const std::vector<std::string> kLatencyTests = {"write_lat", "send_lat"};
const std::vector<std::string> kBandwidthTests = {"write_bw", "bidirectional_bw"};

std::vector<std::string> all_tests() {
  std::vector<std::string> all = kLatencyTests;
  all.insert(all.end(), kBandwidthTests.begin(), kBandwidthTests.end());
  return all;
}

TEST(P2p, ALatencyTableHasPerftestsColumns) {
  const Ran ran = p2p(2, "--test write_lat -b 2 -e 32 -f 4 -n 20");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("beside ib_write_lat"));
  EXPECT_THAT(ran.out, HasSubstr(" #bytes     #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    "
                                 "t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"));
  const auto table = table_of(ran.out);
  ASSERT_EQ(table.size(), 4U) << ran.out;
  const std::vector<std::string> sizes = {"2", "8", "32"};
  for (size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_EQ(table[i + 1].size(), 9U) << ran.out;
    EXPECT_EQ(table[i + 1][0], sizes[i]);
    EXPECT_EQ(table[i + 1][1], "20");
    EXPECT_GT(std::stod(table[i + 1][2]), 0);
  }
}

TEST(P2p, ABandwidthTableHasPerftestsColumns) {
  const Ran ran = p2p(2, "--test bidirectional_bw -b 1K -e 1K -n 50");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("beside ib_write_bw -b"));
  EXPECT_THAT(ran.out, HasSubstr(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"));
  const auto table = table_of(ran.out);
  ASSERT_EQ(table.size(), 2U) << ran.out;
  ASSERT_EQ(table[1].size(), 5U) << ran.out;
  EXPECT_EQ(table[1][0], "1024");
  EXPECT_EQ(table[1][1], "50");
}

TEST(P2p, EveryTestIsRightInBothMemories) {
  for (const std::string& test : all_tests()) {
    for (const char* memory : {"window", "malloc"}) {
      // Sizes that are no whole words, and long ones among them.
      const auto all = rows("--test " + test + " -b 3 -e 1M -f 43 -n 20 --" + memory);
      ASSERT_EQ(all.size(), 5U) << test;
      for (const json& row : all) {
        EXPECT_EQ(row["wrong"], 0) << row;
        EXPECT_GE(row["checked"], test == "write_bw" ? 33 : 65) << row;
        EXPECT_EQ(row["test"], test);
        EXPECT_EQ(row["memory"], memory);
      }
    }
  }
}

TEST(P2p, JsonRowsOfLatencyAreInOrder) {
  for (const std::string& test : kLatencyTests) {
    const auto all = rows("--test " + test + " -b 64 -e 64 -n 200");
    ASSERT_EQ(all.size(), 1U);
    const json& row = all[0];
    EXPECT_EQ(row["bytes"], 64);
    EXPECT_EQ(row["iterations"], 200);
    EXPECT_EQ(row["ranks"], 2);
    EXPECT_GT(row["t_min"], 0);
    EXPECT_LE(row["t_min"], row["t_typical"]);
    EXPECT_LE(row["t_min"], row["t_avg"]);
    EXPECT_LE(row["t_typical"], row["percentile_99"]);
    EXPECT_LE(row["percentile_99"], row["percentile_99.9"]);
    EXPECT_LE(row["percentile_99.9"], row["t_max"]);
    EXPECT_LE(row["t_max"], row["t_slowest"]);
    EXPECT_GE(row["t_stdev"], 0);
    EXPECT_FALSE(row.contains("BW_peak"));
    for (const char* name : {"transport", "host", "version", "beside"})
      EXPECT_FALSE(row[name].get<std::string>().empty()) << name;
    EXPECT_GT(row["machine"]["core_count"], 0);
  }
}

TEST(P2p, JsonRowsOfBandwidthFitTogether) {
  for (const std::string& test : kBandwidthTests) {
    const auto all = rows("--test " + test + " -b 4K -e 4K -n 300 -t 5");
    ASSERT_EQ(all.size(), 1U);
    const json& row = all[0];
    EXPECT_EQ(row["iterations"], 300);
    EXPECT_EQ(row["tx_depth"], 5);
    EXPECT_GT(row["BW_average"], 0);
    EXPECT_GE(row["BW_peak"], row["BW_average"]);
    EXPECT_DOUBLE_EQ(row["BW_average"].get<double>(), row["MsgRate"].get<double>() * 1e6 * 4096 / 1048576);
    EXPECT_FALSE(row.contains("t_min"));
  }
}

TEST(P2p, DepthsFromOneToMoreThanThereAreMessagesAreRight) {
  for (const std::string& test : kBandwidthTests)
    for (const char* depth : {"1", "3", "64", "4096"})
      for (const json& row : rows("--test " + test + " -b 1 -e 64K -f 65536 -n 50 -w 3 -t " + depth))
        EXPECT_EQ(row["wrong"], 0) << row;
}

TEST(P2p, JsonOntoStdoutIsInPlaceOfTheTable) {
  const Ran ran = p2p(2, "--test send_lat -b 8 -e 16 -n 5 --json -");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto all = json_lines(ran.out);
  ASSERT_EQ(all.size(), 2U) << ran.out;
  EXPECT_EQ(all[1]["bytes"], 16);
}

TEST(P2p, AFlippedBitIsFoundOnEitherRank) {
  for (const std::string& test : all_tests()) {
    for (const char* rank : {"0", "1"}) {
      // Rank 0 receives nothing in write_bw, and has nothing to spoil.
      if (test == "write_bw" && *rank == '0') continue;
      const Ran ran = p2p(2, "--test " + test + " -b 16 -e 16 -n 5 --flip-bit " + rank);
      EXPECT_EQ(ran.status, 1) << test;
      EXPECT_THAT(ran.err, HasSubstr(std::string("tutti-p2p: rank ") + rank + ": wrong: message 0 of 16 bytes from"));
      EXPECT_EQ(count_of(ran.err, "bytes of the checked messages are wrong"), 1U) << ran.err;
    }
  }
}

TEST(P2p, OtherWorldsThanOfTwoAreRefusedOnce) {
  const Ran three = p2p(3, "--test write_lat -n 5");
  EXPECT_EQ(three.status, 2);
  EXPECT_EQ(count_of(three.err, "tutti-p2p: "), 1U) << three.err;
  EXPECT_THAT(three.err, HasSubstr("two ranks are measured, and this world has 3: tutti-run -n 2 tutti-p2p"));
  EXPECT_EQ(three.out, "");
  const Ran one = p2p(1, "--test write_lat -n 5");
  EXPECT_EQ(one.status, 2);
  EXPECT_THAT(one.err, HasSubstr("this world has 1"));
}

TEST(P2p, AUsageErrorIsSaidOnceWithWhatIsAllowed) {
  const Ran test = p2p(2, "--test write");
  EXPECT_EQ(test.status, 2);
  EXPECT_EQ(count_of(test.err, "'write' is none of bidirectional_bw, send_lat, write_bw, write_lat"), 1U) << test.err;
  const Ran iterations = p2p(2, "--test write_lat -n 1");
  EXPECT_EQ(iterations.status, 2);
  EXPECT_EQ(count_of(iterations.err, "--iters: '1' is too small: at least 5"), 1U) << iterations.err;
}

TEST(P2p, MoreThanTheMemoryIsAUsageError) {
  for (const char* size : {"1048576G", "17179869183G"}) {
    const Ran ran = p2p(2, std::string("--test write_bw -t 4096 -b ") + size);
    EXPECT_EQ(ran.status, 2) << size;
    EXPECT_EQ(count_of(ran.err, "GiB available: lower --max-bytes"), 1U) << ran.err;
  }
}

TEST(P2p, AJsonFileThatCannotBeWrittenIsTold) {
  const Ran ran = p2p(2, "--test write_lat -b 8 -e 8 -n 5 --json /nowhere/rows.json");
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("--json: cannot write '/nowhere/rows.json': No such file or directory"));
}

}  // namespace
}  // namespace tutti::perf
