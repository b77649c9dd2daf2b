// Binding ranks to cores: who sits where, and that a process never leaves the processors that it was given.
#include "topology/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>

namespace tutti::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CpuList affinity() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  CpuList cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

CpuList flat(const std::vector<CpuList>& cores) {
  CpuList all;
  for (const CpuList& core : cores) all.insert(all.end(), core.begin(), core.end());
  std::ranges::sort(all);
  return all;
}

// Runs `body` in a child of its own, so that the binding of the test itself stays. 0: it returned true.
template <class Body>
int in_child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

TEST(Binding, EachRankGetsACoreAndIsBoundToIt) {
  const auto cores = allowed_cores();
  ASSERT_TRUE(cores.ok()) << cores.status().message();
  const std::vector<CpuList> places = bindings(cores.value(), static_cast<int>(cores.value().size()));
  for (const CpuList& place : places)
    EXPECT_EQ(in_child([&] { return CpuMask(place).bind_this_thread() == 0 && affinity() == place; }), 0)
        << to_string(place);
}

TEST(Binding, TheAllowedCoresAreWhatTheProcessMayUse) {
  const auto cores = allowed_cores();
  ASSERT_TRUE(cores.ok()) << cores.status().message();
  EXPECT_EQ(flat(cores.value()), affinity());
  for (const CpuList& core : cores.value()) EXPECT_FALSE(core.empty());
}

TEST(Binding, ARestrictedProcessSeesItsOwnProcessorsAlone) {
  const CpuList all = affinity();
  if (all.size() < 2) GTEST_SKIP() << "needs two processors to leave one out";
  for (const int cpu : {all.front(), all.back()})
    EXPECT_EQ(in_child([&] {
                if (CpuMask({cpu}).bind_this_thread() != 0) return false;
                const auto cores = allowed_cores();
                return cores.ok() && cores.value() == std::vector<CpuList>{{cpu}} &&
                       bindings(cores.value(), 3) == std::vector<CpuList>{{cpu}, {cpu}, {cpu}};
              }),
              0)
        << cpu;
}

TEST(Binding, RanksTakeDistinctCoresFirstThenGoAround) {
  const std::vector<CpuList> cores{{0, 4}, {1, 5}, {2, 6}};
  EXPECT_THAT(bindings(cores, 2), ElementsAre(CpuList{0, 4}, CpuList{1, 5}));
  EXPECT_THAT(bindings(cores, 3), ElementsAre(CpuList{0, 4}, CpuList{1, 5}, CpuList{2, 6}));
  EXPECT_THAT(bindings(cores, 4), ElementsAre(CpuList{0}, CpuList{1, 5}, CpuList{2, 6}, CpuList{4}))
      << "two ranks on one core have a thread each";
  EXPECT_THAT(bindings(cores, 7),
              ElementsAre(CpuList{0}, CpuList{1}, CpuList{2}, CpuList{4}, CpuList{5}, CpuList{6}, CpuList{0}));
  EXPECT_THAT(bindings(cores, 0), ElementsAre());
}

TEST(Binding, CoresOfUnlikeSizesAreSharedByWhatTheyHave) {
  const std::vector<CpuList> cores{{0, 1}, {2}};
  EXPECT_THAT(bindings(cores, 4), ElementsAre(CpuList{0}, CpuList{2}, CpuList{1}, CpuList{2}));
}

TEST(Binding, NeverUsesWhatIsNotAllowedAndUsesTheLeastFirst) {
  const std::vector<CpuList> cores{{3}, {64, 200}, {65, 201}};
  for (int ranks = 1; ranks <= 20; ++ranks) {
    const auto places = bindings(cores, ranks);
    ASSERT_EQ(places.size(), static_cast<size_t>(ranks));
    std::multiset<int> used;
    for (const CpuList& place : places) used.insert(place.begin(), place.end());
    for (const int cpu : used) EXPECT_THAT(flat(cores), testing::Contains(cpu));
    if (ranks <= 3) {
      for (const int cpu : used) EXPECT_EQ(used.count(cpu), 1u) << ranks << " ranks share processor " << cpu;
    }
  }
}

TEST(Binding, ToAProcessorThatIsNotThereFails) { EXPECT_EQ(CpuMask({100'000}).bind_this_thread(), EINVAL); }

TEST(Binding, RefusesToBindByTheTopologyOfAnotherMachine) {
  EXPECT_EQ(in_child([] {
              setenv("HWLOC_SYNTHETIC", "package:2 core:8 pu:2", 1);
              const auto cores = allowed_cores();
              return !cores.ok() && cores.status().code() == Code::unsupported &&
                     cores.status().message().find("HWLOC_SYNTHETIC") != std::string::npos;
            }),
            0);
}

TEST(Binding, ListsReadAsTasksetsDo) {
  EXPECT_EQ(to_string(CpuList{}), "");
  EXPECT_EQ(to_string(CpuList{5}), "5");
  EXPECT_EQ(to_string(CpuList{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

}  // namespace
}  // namespace tutti::internal
