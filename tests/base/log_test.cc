// The log: what a line looks like, that it goes to standard error whole, and that it may be used at any time.
#include "src/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

namespace tutti::internal {
namespace {

using ::testing::HasSubstr;

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level("warn");
    set_log_rank(-1);
  }
  void TearDown() override { SetUp(); }

  template <class Body>
  static std::string logged(Body body) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    body();
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(LogTest, PrefixesALineWithRankAndLevel) {
  set_log_rank(3);
  EXPECT_EQ(logged([] { log_warn("{} of {} ranks are missing", 2, 8); }), "[tutti 3] warn: 2 of 8 ranks are missing\n");
  set_log_rank(-1);
  EXPECT_EQ(logged([] { log_error("no rank yet"); }), "[tutti] error: no rank yet\n");
}

TEST_F(LogTest, ShowsTheChosenLevelAndThoseAboveIt) {
  const std::vector<std::string> levels{"debug", "info", "warn", "error", "off"};
  for (size_t chosen = 0; chosen < levels.size(); ++chosen) {
    set_log_level(levels[chosen]);
    const std::string text = logged([] {
      log_debug("line");
      log_info("line");
      log_warn("line");
      log_error("line");
    });
    EXPECT_EQ(std::ranges::count(text, '\n'), static_cast<long>(4 - chosen)) << levels[chosen];
    if (chosen < 4) {
      EXPECT_THAT(text, HasSubstr(levels[chosen] + ": line"));
    }
  }
}

TEST_F(LogTest, TextIsNeverTakenForAFormat) {
  EXPECT_EQ(logged([] { log_warn("{}", "100 % {} {0} %n \\"); }), "[tutti] warn: 100 % {} {0} %n \\\n");
}

TEST_F(LogTest, ThreadsSpeakForTheirRanksInWholeLines) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  const std::string text = logged([] {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kThreads; ++rank)
      threads.emplace_back([rank] {
        set_log_rank(rank);
        for (int line = 0; line < kLines; ++line) log_warn("{} says {}", rank, line);
      });
    for (std::thread& thread : threads) thread.join();
  });
  std::set<std::string> expected, found;
  for (int rank = 0; rank < kThreads; ++rank)
    for (int line = 0; line < kLines; ++line)
      expected.insert(fmt::format("[tutti {}] warn: {} says {}", rank, rank, line));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) found.insert(line);
  EXPECT_EQ(found, expected);
}

// In a static object, made before the first line is logged and so destroyed after whatever the log may have made.
struct LogsAtExit {
  bool armed = false;
  ~LogsAtExit() {
    if (armed) log_warn("still here");
  }
} logs_at_exit;

TEST_F(LogTest, MayBeUsedWhileTheProgramExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        logs_at_exit.armed = true;
        log_warn("first");
        std::exit(7);
      },
      testing::ExitedWithCode(7), "first(.|\n)*still here");
}

}  // namespace
}  // namespace tutti::internal
