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

// The cores that this process may use, as they are now.
Result<std::vector<CpuList>> allowed_cores() {
  const auto machine = Machine::read(MachineSource());
  if (!machine.ok()) return machine.status();
  return allowed_units(machine.value(), BindUnit::core);
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
  const std::vector<CpuList> places = bind_to_cores(cores.value(), static_cast<int>(cores.value().size()));
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
                       bind_to_cores(cores.value(), 3) == std::vector<CpuList>{{cpu}, {cpu}, {cpu}};
              }),
              0)
        << cpu;
}

TEST(Binding, RanksTakeDistinctCoresFirstThenGoAround) {
  const std::vector<CpuList> cores{{0, 4}, {1, 5}, {2, 6}};
  EXPECT_THAT(bind_to_cores(cores, 2), ElementsAre(CpuList{0, 4}, CpuList{1, 5}));
  EXPECT_THAT(bind_to_cores(cores, 3), ElementsAre(CpuList{0, 4}, CpuList{1, 5}, CpuList{2, 6}));
  EXPECT_THAT(bind_to_cores(cores, 4), ElementsAre(CpuList{0}, CpuList{1, 5}, CpuList{2, 6}, CpuList{4}))
      << "two ranks on one core have a thread each";
  EXPECT_THAT(bind_to_cores(cores, 7),
              ElementsAre(CpuList{0}, CpuList{1}, CpuList{2}, CpuList{4}, CpuList{5}, CpuList{6}, CpuList{0}));
  EXPECT_THAT(bind_to_cores(cores, 0), ElementsAre());
}

TEST(Binding, CoresOfUnlikeSizesAreSharedByWhatTheyHave) {
  const std::vector<CpuList> cores{{0, 1}, {2}};
  EXPECT_THAT(bind_to_cores(cores, 4), ElementsAre(CpuList{0}, CpuList{2}, CpuList{1}, CpuList{2}));
}

TEST(Binding, NeverUsesWhatIsNotAllowedAndUsesTheLeastFirst) {
  const std::vector<CpuList> cores{{3}, {64, 200}, {65, 201}};
  for (int ranks = 1; ranks <= 20; ++ranks) {
    const auto places = bind_to_cores(cores, ranks);
    ASSERT_EQ(places.size(), static_cast<size_t>(ranks));
    std::multiset<int> used;
    for (const CpuList& place : places) used.insert(place.begin(), place.end());
    for (const int cpu : used) EXPECT_THAT(flat(cores), testing::Contains(cpu));
    if (ranks <= 3) {
      for (const int cpu : used) EXPECT_EQ(used.count(cpu), 1u) << ranks << " ranks share processor " << cpu;
    }
  }
}

Machine synthetic(const std::string& text) {
  auto machine = Machine::read({MachineSource::Kind::synthetic, text});
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return machine.ok() ? machine.value() : Machine();
}

TEST(Binding, LargerUnitsAreSharedByNeighbours) {
  const Machine machine = synthetic("package:2 [numa] l3:2 core:2 pu:1");
  const auto bound = [&](BindUnit unit, int ranks) { return bindings(machine, unit, ranks).value(); };
  EXPECT_THAT(bound(BindUnit::l3, 4), ElementsAre(CpuList{0, 1}, CpuList{2, 3}, CpuList{4, 5}, CpuList{6, 7}));
  EXPECT_THAT(bound(BindUnit::numa, 4),
              ElementsAre(CpuList{0, 1, 2, 3}, CpuList{0, 1, 2, 3}, CpuList{4, 5, 6, 7}, CpuList{4, 5, 6, 7}));
  EXPECT_EQ(bound(BindUnit::package, 5), bound(BindUnit::numa, 5));
  EXPECT_THAT(bound(BindUnit::l3, 2), ElementsAre(CpuList{0, 1}, CpuList{4, 5})) << "few ranks spread";
}

TEST(Binding, AUnitThatTheMachineLacksIsTheNextLarger) {
  const Machine machine = synthetic("package:2 core:2 pu:1");
  EXPECT_THAT(bindings(machine, BindUnit::l3, 2).value(), ElementsAre(CpuList{0, 1, 2, 3}, CpuList{0, 1, 2, 3}))
      << "no L3, and one NUMA node";
}

TEST(Binding, NeverLeavesTheAllowedSet) {
  Machine machine = synthetic("package:2 [numa] l3:2 core:2 pu:2");
  machine.allowed = {1, 6, 7, 9, 14};
  for (const BindUnit unit : {BindUnit::core, BindUnit::l3, BindUnit::numa, BindUnit::package})
    for (int ranks = 1; ranks <= 12; ++ranks) {
      const auto places = bindings(machine, unit, ranks);
      for (const CpuList& place : places.value()) {
        EXPECT_FALSE(place.empty());
        EXPECT_TRUE(contains(machine.allowed, place)) << to_string(place);
      }
    }
  machine.allowed.clear();
  EXPECT_EQ(bindings(machine, BindUnit::core, 1).status().code(), Code::unsupported);
}

TEST(Binding, RanksThatOutnumberTheirCoresAreTold) {
  const Machine machine = synthetic("package:2 [numa] core:2 pu:2");
  const auto told = [&](BindUnit unit, int ranks) { return crowding(machine, bindings(machine, unit, ranks).value()); };
  for (const BindUnit unit : {BindUnit::core, BindUnit::numa, BindUnit::package}) EXPECT_EQ(told(unit, 4), "");
  EXPECT_EQ(told(BindUnit::numa, 5), "3 ranks share 2 cores (0-1)");
  EXPECT_EQ(told(BindUnit::package, 8), "4 ranks share 2 cores (0-1), and so in 1 more place");
  EXPECT_EQ(told(BindUnit::core, 5), "2 ranks share 1 core (0)") << "each has a thread of it";
  Machine restricted = machine;
  restricted.allowed = {0, 1, 2, 4};
  EXPECT_EQ(crowding(restricted, bindings(restricted, BindUnit::numa, 4).value()), "2 ranks share 1 core (2)");
}

TEST(Binding, ToAProcessorThatIsNotThereFails) { EXPECT_EQ(CpuMask({100'000}).bind_this_thread(), EINVAL); }

TEST(Binding, RefusesToBindByTheTopologyOfAnotherMachine) {
  EXPECT_EQ(in_child([] {
              setenv("HWLOC_SYNTHETIC", "package:2 core:8 pu:2", 1);
              const auto machine = machine_to_bind_on("");
              return !machine.ok() && machine.status().code() == Code::unsupported &&
                     machine.status().message().find("HWLOC_SYNTHETIC") != std::string::npos;
            }),
            0);
}

TEST(CpuListTest, ReadsAndPrintsAsTasksetDoes) {
  EXPECT_EQ(to_string(CpuList{}), "");
  EXPECT_EQ(to_string(CpuList{5}), "5");
  EXPECT_EQ(to_string(CpuList{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  for (const CpuList& cpus : {CpuList{}, CpuList{5}, CpuList{0, 1, 2, 3, 8, 10, 11}, CpuList{65535}})
    EXPECT_EQ(parse_cpu_list(to_string(cpus)), cpus);
  for (const char* text : {"-", "1-", "-1", "1,", ",1", "3-1", "1,1", "2,1", "a", "1 ", "65536", "99999999999", "1--2"})
    EXPECT_FALSE(parse_cpu_list(text)) << text;
}

TEST(CpuListTest, OfThisThreadIsItsAffinity) { EXPECT_EQ(own_cpus(), affinity()); }

}  // namespace
}  // namespace tutti::internal
