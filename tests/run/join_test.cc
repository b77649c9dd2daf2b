// Ranks of tutti-run join through the store that it serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "launched.h"

namespace {

using ::testing::HasSubstr;
using tutti_test::Launched;

TEST(Join, RanksMeetAtTheLaunchersStore) {
  for (const int ranks : {1, 2, 5}) {
    Launched run({"-n", std::to_string(ranks), TUTTI_JOIN_WORKER});
    EXPECT_EQ(run.wait(), 0) << run.err();
    const std::string line = std::to_string(ranks * (ranks - 1) / 2) + " of " + std::to_string(ranks) + "\n";
    std::string expected;
    for (int rank = 0; rank < ranks; ++rank) expected += line;
    EXPECT_EQ(run.out(), expected);
    EXPECT_EQ(run.err(), "");
    EXPECT_TRUE(run.is_all_gone());
  }
}

TEST(Join, JobsBesideEachOtherDoNotMeet) {
  Launched first({"-n", "2", TUTTI_JOIN_WORKER}), second({"-n", "3", TUTTI_JOIN_WORKER});
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(first.out(), "1 of 2\n1 of 2\n");
  EXPECT_EQ(second.out(), "3 of 3\n3 of 3\n3 of 3\n");
}

TEST(Join, WhenRankZeroFailsTheStoreIsStillThere) {
  // The launcher serves it, so the status is the one that rank 0 left with, and the others know who failed.
  Launched run({"-n", "3", TUTTI_JOIN_WORKER, "fail", "0"});
  EXPECT_EQ(run.wait(), 3) << run.err();
  EXPECT_THAT(run.err(), HasSubstr("rank 0 (process "));
  EXPECT_TRUE(run.is_all_gone());
}

// In a network namespace of its own, as in a machine without a network.
Launched::Options alone(bool loopback) {
  Launched::Options options;
  options.before_exec = [loopback] {
    if (unshare(CLONE_NEWNET) != 0) _exit(77);
    if (!loopback) return;
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) _exit(78);
  };
  return options;
}

TEST(Join, WhereHwlocCannotReadTheMachineRanksAreNotPlacedButMeet) {
  for (const char* variable : {"HWLOC_XMLFILE=/nowhere.xml", "HWLOC_SYNTHETIC=package:2 core:8 pu:2"}) {
    Launched::Options options;
    options.environment = {variable};
    Launched run({"-n", "3", TUTTI_JOIN_WORKER}, options);
    EXPECT_EQ(run.wait(), 0) << variable << run.err();
    EXPECT_EQ(run.out(), "3 of 3\n3 of 3\n3 of 3\n");
  }
}

TEST(Join, AVariableThatMakesHwlocShowAnotherMachineIsWarnedOf) {
  Launched::Options options;
  options.environment = {"HWLOC_SYNTHETIC=package:2 core:8 pu:2"};
  Launched run({"-n", "2", TUTTI_JOIN_WORKER}, options);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.err(), HasSubstr("HWLOC_SYNTHETIC=package:2 core:8 pu:2 makes hwloc show another machine"));
}

TEST(Join, ATopologyFileThatIsNoneIsRefused) {
  Launched run({"-n", "2", "--env", "TUTTI_TOPOLOGY_FILE=/nowhere.xml", TUTTI_JOIN_WORKER});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.err(), HasSubstr("TUTTI_TOPOLOGY_FILE: topology file /nowhere.xml: No such file"));
}

TEST(Join, LoopbackAloneIsEnough) {
  Launched run({"-n", "3", TUTTI_JOIN_WORKER}, alone(true));
  const int status = run.wait();
  if (status == 77) GTEST_SKIP() << "unshare(CLONE_NEWNET) is not allowed here";
  EXPECT_EQ(status, 0) << run.err();
  EXPECT_EQ(run.out(), "3 of 3\n3 of 3\n3 of 3\n");
}

TEST(Join, WithoutLoopbackNoRankIsStartedAndTheReasonIsTold) {
  Launched run({"-n", "3", "echo", "started"}, alone(false));
  const int status = run.wait();
  if (status == 77) GTEST_SKIP() << "unshare(CLONE_NEWNET) is not allowed here";
  EXPECT_EQ(status, 125);
  EXPECT_EQ(run.out(), "");
  EXPECT_THAT(run.err(), HasSubstr("the loopback device is down"));
  EXPECT_TRUE(run.is_all_gone());
}

}  // namespace
