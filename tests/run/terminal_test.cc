// tutti-run on a terminal: rank 0 reads from it, and its keys reach the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "launched.h"

namespace {

using ::testing::HasSubstr;

// tutti-run with a terminal of its own.
class OnTerminal {
 public:
  explicit OnTerminal(std::vector<std::string> arguments) {
    pid_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    std::vector<char*> argv{const_cast<char*>("tutti-run")};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(TUTTI_RUN, argv.data());
    _exit(99);
  }
  ~OnTerminal() {
    if (!has_ended_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  void type(const std::string& keys) const {
    EXPECT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  bool shows(const std::string& text) {
    return tutti_test::soon([&] {
      read_some();
      return screen_.find(text) != std::string::npos;
    });
  }
  int wait() {
    int status = -1;
    has_ended_ = tutti_test::soon([&] {
      read_some();
      return waitpid(pid_, &status, WNOHANG) == pid_;
    });
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& screen() const { return screen_; }

 private:
  void read_some() {
    pollfd poll_fd{terminal_, POLLIN, 0};
    char buffer[4096];
    if (poll(&poll_fd, 1, 0) != 1) return;
    const ssize_t bytes = read(terminal_, buffer, sizeof buffer);
    if (bytes > 0) screen_.append(buffer, static_cast<size_t>(bytes));
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  bool has_ended_ = false;
  std::string screen_;
};

TEST(Terminal, RankZeroReadsWhatIsTyped) {
  OnTerminal run({"-n", "2", "sh", "-c", "while read line; do echo \"$RANK read $line.\"; done; echo \"$RANK ends\""});
  EXPECT_TRUE(run.shows("1 ends"));
  run.type("hello\n");
  EXPECT_TRUE(run.shows("0 read hello."));
  run.type("again\n");
  EXPECT_TRUE(run.shows("0 read again."));
  run.type("\x04");
  EXPECT_EQ(run.wait(), 0) << run.screen();
  EXPECT_THAT(run.screen(), HasSubstr("0 ends"));
}

TEST(Terminal, ControlCInterruptsEveryRank) {
  OnTerminal run({"-n", "2", "sh", "-c", "echo \"ready $RANK.\"; exec sleep 100"});
  EXPECT_TRUE(run.shows("ready 0."));
  EXPECT_TRUE(run.shows("ready 1."));
  run.type("\x03");
  EXPECT_EQ(run.wait(), 128 + SIGINT) << run.screen();
}

TEST(Terminal, RanksWriteToItThoughItStopsBackgroundOutput) {
  OnTerminal run({"-n", "2", "sh", "-c", "stty tostop </dev/tty 2>/dev/null; echo \"rank $RANK writes\""});
  EXPECT_EQ(run.wait(), 0) << run.screen();
  EXPECT_THAT(run.screen(), HasSubstr("rank 1 writes"));
}

}  // namespace
