// What ranks write: unbroken without tags, in whole lines with them, whoever reads.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "launched.h"

namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using tutti_test::Launched;

std::vector<std::string> shell(int ranks, const std::string& script, const std::string& option = "--tag-output") {
  return {"-n", std::to_string(ranks), option, "--", "sh", "-c", script};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TaggedOutput, TellsWhoWroteALineOnEitherStream) {
  Launched run(shell(2, "echo out; echo err >&2; printf 'no end'"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_THAT(lines_of(run.out()), UnorderedElementsAre("[0] out", "[0] no end", "[1] out", "[1] no end"));
  EXPECT_THAT(lines_of(run.err()), UnorderedElementsAre("[0] err", "[1] err"));
}

// Lines of one letter, of lengths that a rank and its line number give.
void expect_whole_lines(const std::string& text, int ranks, int lines_each) {
  std::map<char, int> seen;
  for (const std::string& line : lines_of(text)) {
    const size_t at = line.find("] ") + 2;
    ASSERT_GT(line.size(), at) << line.substr(0, 80);
    const char letter = line[at];
    EXPECT_EQ(line.substr(0, at), "[" + std::to_string(letter - 'a') + "] ");
    EXPECT_EQ(line.find_first_not_of(letter, at), std::string::npos) << "another rank's bytes in a line";
    EXPECT_EQ(line.size() - at, 200'001u + 1000 * (letter - 'a'));
    ++seen[letter];
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(ranks));
  for (const auto& [letter, count] : seen) EXPECT_EQ(count, lines_each) << letter;
}

const std::string kLongLines =
    "letter=$(printf $(printf '\\\\%03o' $((97 + RANK)))); n=0; "
    "line=$(head -c $((200001 + 1000 * RANK)) /dev/zero | tr '\\0' $letter); "
    "while [ $n -lt 5 ]; do echo $line; echo $line >&2; n=$((n + 1)); done";

TEST(TaggedOutput, KeepsLongLinesWhole) {
  Launched run(shell(4, kLongLines));
  EXPECT_EQ(run.wait(), 0) << run.err().substr(0, 200);
  expect_whole_lines(run.out(), 4, 5);
  expect_whole_lines(run.err(), 4, 5);
}

TEST(TaggedOutput, KeepsLinesWholeWhereBothStreamsAreOne) {
  Launched::Options options;
  options.before_exec = [] { dup2(STDOUT_FILENO, STDERR_FILENO); };
  Launched run(shell(4, kLongLines), options);
  EXPECT_EQ(run.wait(), 0);
  expect_whole_lines(run.out(), 4, 10);
}

TEST(TaggedOutput, LosesNothingThatWasWrittenBeforeAnEnd) {
  Launched run(
      shell(3, "head -c 1000000 /dev/zero | tr '\\0' x | fold -w 100; [ $RANK = 1 ] && exit 3; exec sleep 100"));
  EXPECT_EQ(run.wait(), 3);
  size_t of_rank_1 = 0;
  for (const std::string& line : lines_of(run.out())) of_rank_1 += line == "[1] " + std::string(100, 'x');
  EXPECT_EQ(of_rank_1, 10'000u);
}

TEST(TaggedOutput, ASlowReaderGetsItAll) {
  Launched run(shell(2, "head -c 12000000 /dev/zero | tr '\\0' x | fold -w 1000; echo done >&2"));
  // Nobody reads until the ranks must have filled every queue between.
  EXPECT_TRUE(tutti_test::soon([&] { return run.warden() > 0 && tutti_test::state_of(run.warden()) == 'S'; }));
  usleep(300'000);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(lines_of(run.out()).size(), 24'000u);
}

TEST(TaggedOutput, EndsTheRanksWhenNobodyReadsAnyMore) {
  Launched run(shell(2, "while :; do echo line; done"));
  ASSERT_TRUE(run.wait_for_output("line\n", 5));
  run.close_output();
  EXPECT_EQ(run.wait(), 128 + SIGPIPE);
  EXPECT_TRUE(run.is_all_gone());
}

TEST(TaggedOutput, OntoAFullDeviceIsAnError) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  Launched run({"-n", "2", "--tag-output", "sh", "-c", "echo line; exec sleep 100"},
               {"", [] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); }, {}});
  EXPECT_EQ(run.wait(), 125);
  EXPECT_THAT(run.err(), HasSubstr("cannot write the ranks' output: No space left on device"));
}

TEST(TaggedOutput, AStuckReaderDoesNotOutliveATimeout) {
  Launched run({"-n", "2", "--tag-output", "--timeout", "0.5", "sh", "-c", "while :; do echo line; done"});
  // The destructor would wait for it forever, were it stuck: the test reads nothing.
  EXPECT_TRUE(run.is_all_gone());
}

TEST(PlainOutput, PassesBytesAsTheyAre) {
  Launched run(shell(1, "head -c 3000000 /dev/urandom >/proc/self/fd/3; cat /proc/self/fd/3", "--bind=none"));
  run.wait();
  Launched zeros(shell(1, "head -c 3000000 /dev/zero", "--bind=none"));
  EXPECT_EQ(zeros.wait(), 0);
  EXPECT_EQ(zeros.out(), std::string(3'000'000, '\0'));
}

}  // namespace
