// Machines as plain data: of this host, of descriptions, of a file made for the tests.
#include "topology/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "topology/locality.h"

namespace tutti::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Machine synthetic(const std::string& text) {
  auto machine = Machine::read({MachineSource::Kind::synthetic, text});
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return machine.ok() ? machine.value() : Machine();
}

Result<Machine> from_file(const std::string& path) { return Machine::read({MachineSource::Kind::xml_file, path}); }

Machine two_packages() {
  auto machine = from_file(TUTTI_MACHINES "/two_packages.xml");
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return machine.ok() ? machine.value() : Machine();
}

TEST(MachineTest, OfThisHostHoldsWhatTheProcessMayUse) {
  const auto& machine = Machine::this_host();
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_TRUE(machine.value().is_this_host);
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(machine.value().allowed.size(), static_cast<size_t>(CPU_COUNT(&set)));
  EXPECT_FALSE(machine.value().cores.empty());
  EXPECT_GE(machine.value().memory_node_of(machine.value().allowed.front()), 0);
  EXPECT_EQ(&machine, &Machine::this_host()) << "read once";
}

TEST(MachineTest, OfADescription) {
  const Machine machine = synthetic("package:2 [numa] l3:2 core:2 pu:2");
  EXPECT_FALSE(machine.is_this_host);
  EXPECT_THAT(machine.packages, SizeIs(2));
  EXPECT_THAT(machine.numa_nodes, SizeIs(2));
  EXPECT_THAT(machine.l3_domains, SizeIs(4));
  ASSERT_THAT(machine.cores, SizeIs(8));
  EXPECT_THAT(machine.allowed, SizeIs(16));
  const Core& sixth = machine.cores[5];
  EXPECT_THAT(sixth.cpus, ElementsAre(10, 11));
  EXPECT_EQ(sixth.package, 1);
  EXPECT_EQ(sixth.numa, 1);
  EXPECT_EQ(sixth.l3, 2);
  EXPECT_EQ(machine.core_of(11), 5);
  EXPECT_EQ(machine.core_of(99), -1);
  EXPECT_EQ(machine.memory_node_of(11), 1);
}

TEST(MachineTest, MemoryBesideAndAboveTheDramOfCoresIsNotTheirs) {
  // As of a processor with fast memory beside each quarter's DRAM, and a memory expander for all.
  const Machine machine =
      synthetic("[numa(memory=1TiB)] package:1 group:2 [numa(memory=96GiB)] [numa(memory=16GiB)] core:2 pu:1");
  ASSERT_THAT(machine.numa_nodes, SizeIs(5));
  for (const Core& core : machine.cores) {
    const NumaNode& own = machine.numa_nodes[static_cast<size_t>(core.numa)];
    EXPECT_EQ(own.memory_bytes, 96ull << 30);
    EXPECT_EQ(own.kind, MemoryKind::dram);
    EXPECT_EQ(machine.memory_node_of(core.cpus.front()), core.numa);
  }
  EXPECT_EQ(std::ranges::count_if(machine.numa_nodes, &NumaNode::kind_is_guessed), 3);
}

TEST(MachineTest, DevicesHangWhereTheFileSaysSo) {
  const Machine machine = two_packages();
  EXPECT_EQ(machine.host, "two-packages");
  ASSERT_THAT(machine.nics, SizeIs(6));
  const Nic& first = machine.nics[static_cast<size_t>(machine.find_nic("mlx5_0"))];
  EXPECT_EQ(first.pci, "0000:01:00.0");
  EXPECT_THAT(first.nets, ElementsAre("ib0"));
  EXPECT_THAT(first.model, HasSubstr("ConnectX-6"));
  EXPECT_NEAR(first.gbytes(), 31.5, 0.1);
  EXPECT_EQ(first.place.package, 0);
  EXPECT_EQ(first.place.numa, 0);
  EXPECT_THAT(first.place.bridges, ElementsAre("0000:00", "0000:00:01.0"));
  EXPECT_EQ(machine.find_nic("ib0"), machine.find_nic("mlx5_0"));
  EXPECT_EQ(machine.nics[static_cast<size_t>(machine.find_nic("mlx5_1"))].card,
            machine.nics[static_cast<size_t>(machine.find_nic("mlx5_2"))].card);
  ASSERT_THAT(machine.gpus, SizeIs(2));
  EXPECT_EQ(machine.gpus[0].name(), "cuda0");
  EXPECT_EQ(machine.gpus[0].model, "NVIDIA A100-SXM4-40GB");
  EXPECT_THAT(machine.displays, ElementsAre("0000:04:00.0"));
}

TEST(MachineTest, DevicesWithoutAUseSayWhy) {
  const Machine machine = two_packages();
  const auto nic = [&](const char* name) { return machine.nics[static_cast<size_t>(machine.find_nic(name))]; };
  EXPECT_EQ(nic("mlx5_0").why_no_rdma, "");
  EXPECT_THAT(nic("eth0").why_no_rdma, HasSubstr("no RDMA device"));
  EXPECT_EQ(nic("eth0").why_no_use, "");
  EXPECT_THAT(nic("usnic_0").why_no_rdma, HasSubstr("no reliable connections"));
  EXPECT_EQ(nic("usnic_0").place.package, -1);
  EXPECT_THAT(nic("0000:81:00.2").why_no_use, HasSubstr("virtual function"));
}

// A file of this name with this content, for one test.
class TextFile {
 public:
  explicit TextFile(const std::string& content)
      : path_(std::filesystem::temp_directory_path() / ("tutti-machine-" + std::to_string(getpid()) + ".xml")) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void expect_refused(const std::string& content, const std::string& why) {
  const TextFile file(content);
  const auto machine = from_file(file.path());
  ASSERT_FALSE(machine.ok()) << content;
  EXPECT_EQ(machine.status().code(), Code::invalid_argument);
  EXPECT_THAT(machine.status().message(), HasSubstr(file.path()));
  EXPECT_THAT(machine.status().message(), HasSubstr(why));
}

TEST(MachineFile, ThatCannotBeReadIsRefusedWithTheReason) {
  std::ifstream stream(TUTTI_MACHINES "/two_packages.xml", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  expect_refused("", "empty");
  expect_refused("hello", "no <topology>");
  expect_refused(whole.substr(0, whole.size() / 2), "cut short");
  std::string newer = whole;
  newer.replace(newer.find("version=\"2.0\""), 13, "version=\"3.0\"");
  expect_refused(newer, "XML version 3.0");
  std::string damaged = whole;
  damaged.replace(damaged.find("<object type=\"Package\""), 22, "<object type=\"Pakcage\"");
  expect_refused(damaged, "damaged");
  EXPECT_THAT(from_file("/nowhere/machine.xml").status().message(), HasSubstr("No such file"));
  EXPECT_FALSE(from_file("/tmp").ok()) << "a folder";
}

TEST(MachineFile, OfADescriptionThatIsNoneShowsOneThatIs) {
  const auto machine = Machine::read({MachineSource::Kind::synthetic, "packages of two"});
  EXPECT_EQ(machine.status().code(), Code::invalid_argument);
  EXPECT_THAT(machine.status().message(), HasSubstr("'packages of two'"));
  EXPECT_THAT(machine.status().message(), HasSubstr("package:2"));
}

}  // namespace
}  // namespace tutti::internal
