// Signals to tutti-run, and its violent end: what ranks get, and that nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "launched.h"

namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using tutti_test::Launched;
using tutti_test::soon;
using tutti_test::state_of;

std::vector<std::string> shell(int ranks, const std::string& script) {
  return {"-n", std::to_string(ranks), "sh", "-c", script};
}

struct Passed {
  int signal;
  const char* name;
};

class PassedOn : public ::testing::TestWithParam<Passed> {};

TEST_P(PassedOn, ReachesEveryRankOnce) {
  const std::string name = GetParam().name;
  Launched run(shell(3, "trap 'echo got; got=1' " + name +
                            "; echo ready; while [ -z \"$got\" ]; do sleep 0.01; done; sleep 0.2; exit 0"));
  ASSERT_TRUE(run.wait_for_output("ready", 3));
  run.signal(GetParam().signal);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(run.wait_for_output("got", 3));
  EXPECT_FALSE(run.wait_for_output("got", 4)) << "none twice";
}

TEST_P(PassedOn, IsWhatTheStatusTellsWhenRanksEndByIt) {
  Launched run(shell(3, "echo ready; exec sleep 100"));
  ASSERT_TRUE(run.wait_for_output("ready", 3));
  run.signal(GetParam().signal);
  EXPECT_EQ(run.wait(), 128 + GetParam().signal);
  EXPECT_EQ(run.err(), "") << "who sent it knows";
  EXPECT_TRUE(run.is_all_gone());
}

INSTANTIATE_TEST_SUITE_P(Signals, PassedOn,
                         ::testing::Values(Passed{SIGINT, "INT"}, Passed{SIGTERM, "TERM"}, Passed{SIGHUP, "HUP"},
                                           Passed{SIGQUIT, "QUIT"}, Passed{SIGUSR1, "USR1"}, Passed{SIGUSR2, "USR2"}),
                         [](const auto& one) { return one.param.name; });

TEST(Signals, ToTheWholeGroupAsATerminalSendsThemReachRanksOnce) {
  Launched run(
      shell(2, "trap 'echo got; got=1' INT; echo ready; while [ -z \"$got\" ]; do sleep 0.01; done; sleep 0.2"));
  ASSERT_TRUE(run.wait_for_output("ready", 2));
  kill(-run.pid(), SIGINT);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(run.wait_for_output("got", 2));
  EXPECT_FALSE(run.wait_for_output("got", 3));
}

TEST(Signals, StopAndContinueTheWholeJob) {
  Launched run(shell(2, "echo $$.; read go </dev/null; exec sleep 100"));
  ASSERT_TRUE(run.wait_for_output(".\n", 2));
  const std::vector<pid_t> ranks{std::atoi(run.out().c_str()),
                                 std::atoi(run.out().substr(run.out().find('\n') + 1).c_str())};
  run.signal(SIGTSTP);
  EXPECT_TRUE(soon([&] { return state_of(run.pid()) == 'T'; }));
  for (const pid_t rank : ranks) EXPECT_TRUE(soon([&] { return state_of(rank) == 'T'; })) << rank;
  run.signal(SIGCONT);
  EXPECT_TRUE(soon([&] { return state_of(run.pid()) == 'S'; }));
  for (const pid_t rank : ranks) EXPECT_TRUE(soon([&] { return state_of(rank) == 'S'; })) << rank;
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
}

TEST(Signals, IgnoredFromTheStartStayIgnored) {
  Launched::Options options;
  options.before_exec = [] { signal(SIGHUP, SIG_IGN); };
  Launched run(shell(2, "echo ready; sleep 0.3; grep SigIgn /proc/self/status"), options);
  ASSERT_TRUE(run.wait_for_output("ready", 2));
  run.signal(SIGHUP);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(run.wait_for_output("SigIgn:\t0000000000000001", 2)) << run.out();
}

TEST(Signals, WhileRanksAreStartedAreNotLost) {
  for (int round = 0; round < 10; ++round) {
    Launched run(shell(40, "exec sleep 100"));
    // The launcher must be itself: before that the signal ends the test's own child.
    ASSERT_TRUE(soon([&] { return run.left().size() >= 3; }));
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 128 + SIGTERM) << run.err();
    EXPECT_TRUE(run.is_all_gone());
  }
}

TEST(Signals, NoChildOfALauncherWhoseParentIgnoredSigchldIsLost) {
  Launched::Options options;
  options.before_exec = [] { signal(SIGCHLD, SIG_IGN); };
  Launched run(shell(2, "exit 7"), options);
  EXPECT_EQ(run.wait(), 7);
}

// What a job may have started: a plain child, one whose parent has gone, one in its own group, one in its own session.
const std::string kFamily =
    "sleep 300 & (sleep 301 & ) ; setsid sleep 302 & setsid sh -c 'sleep 303 & exec sleep 304' & echo ready; sleep "
    "305; "
    "true";
constexpr size_t kFamilySize = 7;  // with the shell itself

class Killed : public ::testing::Test {
 protected:
  // Everything has been started.
  static void start_all(Launched& run, size_t ranks) {
    ASSERT_TRUE(run.wait_for_output("ready", static_cast<int>(ranks)));
    ASSERT_TRUE(soon([&] { return run.left().size() == ranks * kFamilySize + 2; })) << run.left().size();
  }
};

TEST_F(Killed, WithTheFirstProcessGoneNothingIsLeft) {
  Launched run(shell(4, kFamily));
  start_all(run, 4);
  run.signal(SIGKILL);
  EXPECT_TRUE(run.is_all_gone());
  EXPECT_EQ(run.wait(), 1000 + SIGKILL);
  EXPECT_EQ(run.err(), "tutti-run: its first process was killed: ending the ranks\n");
}

TEST_F(Killed, WithTheSecondProcessGoneNothingIsLeftAndTheStatusTells) {
  Launched run(shell(4, kFamily));
  start_all(run, 4);
  kill(run.warden(), SIGKILL);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  EXPECT_THAT(run.err(), HasSubstr("was ended by signal 9 (Killed): ending the ranks"));
  EXPECT_TRUE(run.is_all_gone());
}

TEST_F(Killed, WithBothGoneTheRanksGoToo) {
  Launched run(shell(4, "exec sleep 300"));
  ASSERT_TRUE(soon([&] { return run.left().size() == 6; }));
  const pid_t warden = run.warden();
  kill(run.pid(), SIGSTOP);
  kill(warden, SIGSTOP);
  kill(run.pid(), SIGKILL);
  kill(warden, SIGKILL);
  EXPECT_TRUE(run.is_all_gone());
}

TEST_F(Killed, WithItsWholeGroupNothingIsLeft) {
  Launched run(shell(2, kFamily));
  start_all(run, 2);
  kill(-run.pid(), SIGKILL);
  EXPECT_TRUE(run.is_all_gone());
}

TEST_F(Killed, AtAnyMomentNothingIsLeft) {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoll(given)) : std::random_device()();
  std::printf("TUTTI_TEST_SEED=%u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    Launched run(shell(4, kFamily));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    const pid_t warden = round % 2 ? run.warden() : -1;
    kill(warden > 0 ? warden : run.pid(), SIGKILL);
    EXPECT_TRUE(run.is_all_gone()) << "round " << round;
    EXPECT_NE(run.wait(), -1);
  }
}

TEST(Leftovers, AreEndedAfterTheRanks) {
  Launched run(shell(2,
                     "sleep 300 & setsid sleep 301 & (trap '' TERM; echo deaf; while :; do sleep 0.05; done) & "
                     "while ! grep -q deaf /proc/self/comm; do sleep 0.2; exit 0; done"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(run.is_all_gone());
}

TEST(Leftovers, MayFinishWhatTheyDo) {
  Launched run(shell(2, "(sleep 0.5; echo late) & exit 0"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(run.wait_for_output("late", 2)) << run.out();
}

TEST(Leftovers, OfAFailedJobAreEndedAtOnce) {
  Launched run(shell(2, "sleep 300 & setsid sleep 301 & exit $((RANK + 3))"));
  EXPECT_THAT(run.wait(), testing::AnyOf(3, 4));
  EXPECT_TRUE(run.is_all_gone());
}

}  // namespace
