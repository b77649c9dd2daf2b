// tutti-perf's command line: what is accepted, and what each value that cannot be meant is told.
#include "options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "exercise.h"
#include "measure.h"
#include "sweep.h"

namespace tutti::perf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Parsed parse_words(std::initializer_list<const char*> words) {
  std::vector<const char*> arguments = {"tutti-perf"};
  arguments.insert(arguments.end(), words);
  return parse(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Options, AreReadByTheirShortAndLongNames) {
  const Parsed parsed =
      parse_words({"reduce", "-b",       "4K",     "--max-bytes", "1G",          "-f",   "4",      "-n",      "7",
                   "-w",     "0",        "-d",     "int16",       "-o",          "max",  "-r",     "2",       "-c",
                   "-i",     "--memory", "window", "--async",     "--algorithm", "ring", "--json", "out.json"});
  ASSERT_TRUE(parsed.options) << parsed.text;
  const Options& options = *parsed.options;
  EXPECT_STREQ(options.operation->name, "reduce");
  EXPECT_EQ(options.min_bytes, 4096U);
  EXPECT_EQ(options.max_bytes, uint64_t{1} << 30);
  EXPECT_EQ(options.factor, 4U);
  EXPECT_EQ(options.iterations, 7U);
  EXPECT_EQ(options.warmup, 0U);
  EXPECT_EQ(options.type, TUTTI_INT16);
  EXPECT_EQ(options.op, TUTTI_MAX);
  EXPECT_EQ(options.root, 2);
  EXPECT_TRUE(options.check && options.in_place && options.async);
  EXPECT_EQ(options.memory, Memory::window);
  EXPECT_EQ(options.algorithm, "ring");
  EXPECT_EQ(options.json, "out.json");
}

struct Fault {
  std::vector<const char*> words;
  const char* says;
};

TEST(Options, AValueThatCannotBeMeantIsAUsageErrorThatNamesIt) {
  const std::vector<Fault> faults = {
      {{}, "tutti-perf: OP is required"},
      {{"all_reduc"}, "'all_reduc' is none of broadcast, reduce, all_reduce"},
      {{"all_reduce", "-b", "8", "-e", "4"}, "--max-bytes: 4 is below --min-bytes 8"},
      {{"all_reduce", "-b", "0", "-e", "0"}, "--min-bytes: 0 bytes: at least 1"},
      {{"all_reduce", "-e", "0"}, "--max-bytes: 0 bytes"},
      {{"all_reduce", "-b", "-8"}, "--min-bytes: '-8' is no size"},
      {{"all_reduce", "-b", ""}, "--min-bytes: '' is no size"},
      {{"all_reduce", "-b", "K"}, "--min-bytes: 'K' is no size"},
      {{"all_reduce", "-b", "1.5M"}, "'1.5M' is no size: a whole number of bytes, or of K, M or G"},
      {{"all_reduce", "-b", "8T"}, "'8T' is no size"},
      {{"all_reduce", "-b", "99999999999G"}, "is too large"},
      {{"all_reduce", "-b", "99999999999999999999"}, "is too large"},
      {{"all_reduce", "-f", "1"}, "--factor: '1' is too small: at least 2"},
      {{"all_reduce", "-f", "0"}, "--factor: '0' is too small: at least 2"},
      {{"all_reduce", "-n", "0"}, "--iters: '0' is too small: at least 1"},
      {{"all_reduce", "-n", "-5"}, "--iters: '-5' is no whole number"},
      {{"all_reduce", "-n", "10000001"}, "--iters: '10000001' is too large: at most 10000000"},
      {{"all_reduce", "-w", "18446744073709551615"}, "--warmup: '18446744073709551615' is too large"},
      {{"all_reduce", "-w", "-1"}, "--warmup: '-1' is no whole number"},
      {{"all_reduce", "-d", "float"}, "--type: 'float' is none of"},
      {{"all_reduce", "-o", "avg"}, "--op: 'avg' is none of"},
      {{"all_reduce", "-o", "bit_and"}, "--op: bit_and is for integers, not for float32"},
      {{"all_reduce", "--memory", "gpu"}, "--memory: 'gpu' is none of malloc, window"},
      {{"broadcast", "-r", "-1"}, "--root: '-1' is no whole number"},
      {{"send_recv", "-i"}, "--in-place: send_recv has two buffers"},
      {{"all_reduce", "--frobnicate"}, "--frobnicate"},
  };
  for (const Fault& fault : faults) {
    std::vector<const char*> arguments = {"tutti-perf"};
    arguments.insert(arguments.end(), fault.words.begin(), fault.words.end());
    const Parsed parsed = parse(static_cast<int>(arguments.size()), arguments.data());
    EXPECT_FALSE(parsed.options) << fault.says;
    EXPECT_EQ(parsed.status, 2) << fault.says;
    EXPECT_THAT(parsed.text, HasSubstr(fault.says));
  }
}

TEST(Options, HelpSaysWhatBytesMeanForEachOperation) {
  const Parsed parsed = parse_words({"--help"});
  EXPECT_FALSE(parsed.options);
  EXPECT_EQ(parsed.status, 0);
  for (const Operation& operation : operations()) EXPECT_THAT(parsed.text, HasSubstr(operation.bytes_are));
}

TEST(Options, SizesAreWholeElementsOfWholeRanksAndEachComesOnce) {
  EXPECT_THAT(counts_of(*parse_words({"all_reduce", "-b", "8", "-e", "64"}).options, 4), ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(counts_of(*parse_words({"all_gather", "-b", "8", "-e", "64"}).options, 4), ElementsAre(1, 2, 4));
  EXPECT_THAT(counts_of(*parse_words({"all_reduce", "-b", "1", "-e", "1"}).options, 4), ElementsAre(1));
  EXPECT_THAT(counts_of(*parse_words({"barrier"}).options, 4), ElementsAre(0));
  // 16 MiB is no 8 times a power of 4, and is asked for.
  EXPECT_EQ(counts_of(*parse_words({"all_reduce", "-e", "16M", "-f", "4"}).options, 4).back(), size_t{4} << 20);
  EXPECT_EQ(bytes_for(*parse_words({"all_gather"}).options, 4, 3), 48U);
  EXPECT_EQ(bytes_for(*parse_words({"reduce", "-d", "int8"}).options, 4, 3), 3U);
}

TEST(Options, TheLargestSizesEndTheSweep) {
  const Parsed parsed = parse_words({"all_reduce", "-b", "1G", "-e", "17179869183G", "-f", "18446744073709551615"});
  ASSERT_TRUE(parsed.options) << parsed.text;
  EXPECT_THAT(counts_of(*parsed.options, 2), ElementsAre(size_t{1} << 28, size_t{17179869183} << 28));
}

TEST(Options, ARootOutsideTheWorldIsTold) {
  const Options options = *parse_words({"broadcast", "-r", "4"}).options;
  EXPECT_EQ(check_world(options, 5), "");
  EXPECT_THAT(check_world(options, 4), HasSubstr("--root: 4 is no rank of this world of 4 (0 to 3)"));
  EXPECT_THAT(check_world(*parse_words({"send_recv"}).options, 1), HasSubstr("two ranks"));
}

TEST(Measure, PercentilesAreNearestRank) {
  std::vector<double> values;
  for (int i = 1; i <= 200; ++i) values.push_back(i);
  EXPECT_EQ(percentile(values, 0.5), 100);
  EXPECT_EQ(percentile(values, 0.99), 198);
  EXPECT_EQ(percentile({3}, 0.5), 3);
  EXPECT_EQ(percentile({3}, 0.99), 3);
}

TEST(Measure, IterationsFitTheTime) {
  EXPECT_EQ(iterations_for(0), 20'000U);
  EXPECT_EQ(iterations_for(1e9), 20U);
  EXPECT_EQ(iterations_for(1000), 333U);
}

}  // namespace
}  // namespace tutti::perf
