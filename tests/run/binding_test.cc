// --bind: where ranks really run.
#include "topology/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "launched.h"

namespace {

using ::testing::HasSubstr;
using tutti::internal::CpuList;
using tutti::internal::CpuMask;
using tutti::internal::to_string;
using tutti_test::Launched;

// What each rank says of itself, as the kernel writes it.
std::vector<std::string> places(int ranks, const std::string& binding, const CpuList& restricted = {}) {
  Launched::Options options;
  if (!restricted.empty()) options.before_exec = [&] { CpuMask(restricted).bind_this_thread(); };
  Launched run({"-n", std::to_string(ranks), "--bind", binding, "sh", "-c",
                "echo $RANK $(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)"},
               options);
  EXPECT_EQ(run.wait(), 0) << run.err();
  std::vector<std::string> result(ranks);
  std::istringstream lines(run.out());
  int rank = 0;
  for (std::string place; lines >> rank >> place;) result.at(rank) = place;
  return result;
}

std::vector<CpuList> cores() {
  const auto machine = tutti::internal::Machine::read(tutti::internal::MachineSource());
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return tutti::internal::allowed_units(machine.value(), tutti::internal::BindUnit::core).value();
}

CpuList all_cpus() {
  CpuList all;
  for (const CpuList& core : cores()) all.insert(all.end(), core.begin(), core.end());
  std::ranges::sort(all);
  return all;
}

TEST(Bind, CoreGivesEachRankItsOwn) {
  const auto expected = cores();
  const auto found = places(static_cast<int>(expected.size()), "core");
  for (size_t rank = 0; rank < expected.size(); ++rank) EXPECT_EQ(found[rank], to_string(expected[rank])) << rank;
  EXPECT_EQ(std::set(found.begin(), found.end()).size(), found.size());
}

TEST(Bind, CoreGoesAroundWhenThereAreMoreRanks) {
  const int ranks = 2 * static_cast<int>(cores().size()) + 1;
  const auto expected = tutti::internal::bind_to_cores(cores(), ranks);
  const auto found = places(ranks, "core");
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(found[rank], to_string(expected[rank])) << rank;
}

TEST(Bind, NoneLeavesRanksWhereTheyMayBe) {
  for (const std::string& place : places(3, "none")) EXPECT_EQ(place, to_string(all_cpus()));
}

TEST(Bind, NeverLeavesWhatTheLauncherMayUse) {
  const CpuList all = all_cpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two processors to leave one out";
  for (const int cpu : {all.front(), all.back()})
    for (const char* binding : {"core", "l3", "numa", "package", "none"})
      for (const std::string& place : places(3, binding, {cpu})) EXPECT_EQ(place, std::to_string(cpu)) << binding;
}

TEST(Bind, MoreRanksThanCoresIsAWarningForEveryUnit) {
  const int ranks = static_cast<int>(cores().size()) + 1;
  for (const char* binding : {"core", "l3", "numa", "package"}) {
    Launched run({"-n", std::to_string(ranks), "--bind", binding, "true"});
    EXPECT_EQ(run.wait(), 0) << run.err();
    EXPECT_THAT(run.err(), HasSubstr("tutti-run: warning: ")) << binding;
    EXPECT_THAT(run.err(), HasSubstr(" ranks share ")) << binding;
  }
  Launched run({"-n", std::to_string(ranks), "--bind", "none", "true"});
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.err(), "");
}

TEST(Bind, FollowsTheTopologyFileAsTheRanksDo) {
  const CpuList two{0, 1};
  if (!tutti::internal::contains(all_cpus(), two)) GTEST_SKIP() << "needs the processors 0 and 1";
  const std::string file = "TUTTI_TOPOLOGY_FILE=" TUTTI_MACHINES "/one_core_each.xml";
  Launched::Options options;
  options.before_exec = [&] { CpuMask(two).bind_this_thread(); };
  Launched run({"-n", "2", "--bind", "package", "--env", file, "sh", "-c",
                "sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status"},
               options);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), testing::AnyOf("0\n1\n", "1\n0\n")) << "the file has a package for each";
}

TEST(Bind, ByTheFileOfAnotherMachineIsRefused) {
  Launched::Options options;
  options.environment = {"TUTTI_TOPOLOGY_FILE=/dev/zero"};
  Launched run({"-n", "2", "--bind", "core", "echo", "started"}, options);
  EXPECT_EQ(run.wait(), 125);
  EXPECT_EQ(run.out(), "");
  EXPECT_THAT(run.err(), HasSubstr("TUTTI_TOPOLOGY_FILE: topology file /dev/zero: "));
}

TEST(Bind, ByTheTopologyOfAnotherMachineIsRefused) {
  Launched::Options options;
  options.environment = {"HWLOC_SYNTHETIC=package:2 core:8 pu:2"};
  Launched run({"-n", "2", "--bind", "core", "echo", "started"}, options);
  EXPECT_EQ(run.wait(), 125);
  EXPECT_EQ(run.out(), "");
  EXPECT_THAT(run.err(), HasSubstr("HWLOC_SYNTHETIC"));
}

}  // namespace
