// tutti-p2p's command line: what is accepted, and what each value that cannot be meant is told.
#include "p2p_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tutti::perf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

P2pParsed parse_words(const std::vector<const char*>& words) {
  std::vector<const char*> arguments = {"tutti-p2p"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return parse_p2p(static_cast<int>(arguments.size()), arguments.data());
}

P2pOptions options_of(const std::vector<const char*>& words) {
  const P2pParsed parsed = parse_words(words);
  EXPECT_TRUE(parsed.options) << parsed.text;
  return parsed.options.value_or(P2pOptions());
}

TEST(P2pOptions, AreReadByTheirShortAndLongNames) {
  const P2pOptions options = options_of({"--test", "write_bw", "-b", "4K", "--max-bytes", "1G", "-f", "4", "-n", "7",
                                         "-w", "0", "-t", "32", "--malloc", "--json", "out.json"});
  EXPECT_STREQ(options.kind->name, "write_bw");
  EXPECT_EQ(options.min_bytes, 4096U);
  EXPECT_EQ(options.max_bytes, uint64_t{1} << 30);
  EXPECT_EQ(options.factor, 4U);
  EXPECT_EQ(options.iterations, 7U);
  EXPECT_EQ(options.warmup, 0U);
  EXPECT_EQ(options.tx_depth, 32U);
  EXPECT_EQ(options.memory, Memory::malloc);
  EXPECT_EQ(options.json, "out.json");
}

TEST(P2pOptions, DefaultsAreThoseOfPerftestWithAll) {
  const P2pOptions options = options_of({"--test", "write_lat"});
  EXPECT_EQ(options.min_bytes, 2U);
  EXPECT_EQ(options.max_bytes, 8388608U);
  EXPECT_EQ(options.factor, 2U);
  EXPECT_EQ(options.memory, Memory::window);
  EXPECT_EQ(sizes_of(options.min_bytes, options.max_bytes, options.factor).size(), 23U);
  EXPECT_EQ(options_of({"--test", "write_lat", "--window"}).memory, Memory::window);
  EXPECT_EQ(options_of({"--test", "write_lat", "-b", "16M"}).max_bytes, 16777216U);
}

TEST(P2pOptions, EachTestIsKnownByItsNameAndHasItsPlace) {
  EXPECT_EQ(tests().size(), 4U);
  for (const TestKind& kind : tests()) EXPECT_EQ(options_of({"--test", kind.name}).kind, &kind);
  EXPECT_STREQ(options_of({"--test", "bidirectional_bw"}).kind->beside, "ib_write_bw -b");
}

struct Fault {
  std::vector<const char*> words;
  const char* says;
};

TEST(P2pOptions, AValueThatCannotBeMeantIsAUsageErrorThatNamesIt) {
  const std::vector<Fault> faults = {
      {{}, "tutti-p2p: --test: none was given: one of bidirectional_bw, send_lat, write_bw, write_lat"},
      {{"--test", "read_lat"}, "--test: 'read_lat' is none of bidirectional_bw, send_lat, write_bw, write_lat"},
      {{"write_lat"}, "write_lat"},
      {{"--test", "write_lat", "-b", "8", "-e", "4"}, "--max-bytes: 4 is below --min-bytes 8"},
      {{"--test", "write_lat", "-b", "0"}, "--min-bytes: 0 bytes: at least 1"},
      {{"--test", "write_lat", "-e", "8T"}, "--max-bytes: '8T' is no size"},
      {{"--test", "write_lat", "-f", "1"}, "--factor: '1' is too small: at least 2"},
      {{"--test", "write_lat", "-n", "4"}, "--iters: '4' is too small: at least 5"},
      {{"--test", "write_lat", "-n", "10000001"}, "--iters: '10000001' is too large: at most 10000000"},
      {{"--test", "write_lat", "-w", "-1"}, "--warmup: '-1' is no whole number"},
      {{"--test", "write_bw", "-t", "0"}, "--tx-depth: '0' is too small: at least 1"},
      {{"--test", "write_bw", "-t", "4097"}, "--tx-depth: '4097' is too large: at most 4096"},
      {{"--test", "send_lat", "-t", "2"}, "--tx-depth: send_lat has one message under way; it is for write_bw"},
      {{"--test", "write_lat", "--window", "--malloc"}, "--malloc"},
      {{"--test", "write_lat", "--frobnicate"}, "--frobnicate"},
  };
  for (const Fault& fault : faults) {
    const P2pParsed parsed = parse_words(fault.words);
    EXPECT_FALSE(parsed.options) << fault.says;
    EXPECT_EQ(parsed.status, 2) << fault.says;
    EXPECT_THAT(parsed.text, HasSubstr(fault.says));
  }
}

TEST(P2pOptions, HelpSaysWhatEachTestIsBesideAndWhatTheColumnsMean) {
  const P2pParsed parsed = parse_words({"--help"});
  EXPECT_FALSE(parsed.options);
  EXPECT_EQ(parsed.status, 0);
  for (const TestKind& kind : tests()) EXPECT_THAT(parsed.text, HasSubstr(kind.beside));
  EXPECT_THAT(parsed.text, HasSubstr("MB are 2^20 bytes"));
  EXPECT_THAT(parsed.text, HasSubstr("half of a round trip"));
  EXPECT_THAT(parsed.text, HasSubstr("Checked, never in the measured time"));
}

TEST(P2pOptions, MessagesArePerftestsNumberAndFewerOnlyWhereTheyAreLong) {
  const P2pOptions latency = options_of({"--test", "write_lat"});
  EXPECT_EQ(messages_for(latency, 2), 1000U);
  EXPECT_EQ(messages_for(latency, 64 << 10), 1000U);
  EXPECT_EQ(messages_for(latency, 128 << 10), 500U);
  EXPECT_EQ(messages_for(latency, 8 << 20), 100U);
  const P2pOptions bandwidth = options_of({"--test", "write_bw"});
  EXPECT_EQ(messages_for(bandwidth, 64 << 10), 5000U);
  EXPECT_EQ(messages_for(bandwidth, 1 << 20), 312U);
  EXPECT_EQ(messages_for(options_of({"--test", "write_bw", "-n", "70"}), 8 << 20), 70U) << "what was asked for stays";
}

TEST(P2pOptions, WarmUpIsATenthUnlessAskedFor) {
  const P2pOptions options = options_of({"--test", "write_lat"});
  EXPECT_EQ(warmup_for(options, 5), 2U);
  EXPECT_EQ(warmup_for(options, 500), 50U);
  EXPECT_EQ(warmup_for(options, 5000), 100U);
  EXPECT_EQ(warmup_for(options_of({"--test", "write_lat", "-w", "0"}), 500), 0U);
}

TEST(P2pOptions, TheDepthIsBoundByBytesUnlessAskedFor) {
  const P2pOptions options = options_of({"--test", "write_bw"});
  EXPECT_EQ(depth_for(options, 2), 16U);
  EXPECT_EQ(depth_for(options, 2 << 20), 16U);
  EXPECT_EQ(depth_for(options, 8 << 20), 4U);
  EXPECT_EQ(depth_for(options, uint64_t{1} << 30), 2U);
  EXPECT_EQ(depth_for(options_of({"--test", "write_bw", "-t", "64"}), 8 << 20), 64U);
}

TEST(P2pOptions, OnlyAWorldOfTwoIsMeasured) {
  EXPECT_EQ(check_p2p_world(2), "");
  EXPECT_THAT(check_p2p_world(1), HasSubstr("two ranks are measured, and this world has 1"));
  EXPECT_THAT(check_p2p_world(3), HasSubstr("two ranks are measured, and this world has 3"));
}

TEST(Sizes, AreTimesTheFactorAndTheLargestIsTheLast) {
  EXPECT_THAT(sizes_of(2, 16, 2), ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(sizes_of(2, 17, 4), ElementsAre(2, 8, 17));
  EXPECT_THAT(sizes_of(5, 5, 2), ElementsAre(5));
}

}  // namespace
}  // namespace tutti::perf
