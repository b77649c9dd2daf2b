// Recorded machines: what each shows, against what people who looked at it wrote down (machines/recorded.json).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "topology/locality.h"
#include "topology/show.h"

namespace tutti::internal {
namespace {

using nlohmann::json;
using Names = std::set<std::string>;

json expectations() {
  std::ifstream file(TUTTI_MACHINES "/recorded.json");
  return json::parse(file);
}

std::vector<std::string> file_names() {
  std::vector<std::string> names;
  const json machines = expectations();
  for (const auto& [name, unused] : machines.items()) names.push_back(name);
  return names;
}

class Recorded : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto path = std::filesystem::path(TUTTI_RECORDED_MACHINES) / GetParam();
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "the recorded machine " << GetParam() << " is not here";
    expected_ = expectations()[GetParam()];
    auto read = Machine::read({MachineSource::Kind::xml_file, path});
    if (expected_.contains("refusal")) {
      ASSERT_FALSE(read.ok());
      EXPECT_THAT(read.status().message(), ::testing::HasSubstr(expected_["refusal"].get<std::string>()));
      return;
    }
    ASSERT_TRUE(read.ok()) << read.status().message();
    machine_ = *read;
  }

  bool is_refused() const { return expected_.contains("refusal"); }
  json os_index_of_package(int index) const {
    return index < 0 ? json(nullptr) : json(machine_.packages[static_cast<size_t>(index)].os_index);
  }
  json os_index_of_node(int index) const {
    return index < 0 ? json(nullptr) : json(machine_.numa_nodes[static_cast<size_t>(index)].os_index);
  }
  // The RDMA devices that are as good as the best.
  Names best_rdma(const Anchor& anchor) const {
    const auto ranked = rank_nics(machine_, anchor, NicUse::rdma);
    Names names;
    for (size_t i = 0; i < equals(machine_, ranked); ++i)
      names.insert(machine_.nics[static_cast<size_t>(ranked[i].nic)].rdma);
    return names;
  }
  std::string hop_of_best(const Anchor& anchor) const {
    const auto ranked = rank_nics(machine_, anchor, NicUse::rdma);
    return ranked.empty() ? "" : to_string(ranked.front().hop);
  }

  json expected_;
  Machine machine_;
};

TEST_P(Recorded, HasItsParts) {
  if (is_refused()) return;
  EXPECT_EQ(machine_.packages.size(), expected_["packages"]);
  EXPECT_EQ(machine_.l3_domains.size(), expected_["l3_domains"]);
  EXPECT_EQ(machine_.cores.size(), expected_["cores"]);
  size_t pus = 0;
  for (const Core& core : machine_.cores) pus += core.cpus.size();
  EXPECT_EQ(pus, expected_["pus"]);
}

TEST_P(Recorded, MemoryIsTakenWhereItMayBe) {
  if (is_refused()) return;
  ASSERT_EQ(machine_.numa_nodes.size(), expected_["numa_nodes"].size());
  for (const json& wanted : expected_["numa_nodes"]) {
    const auto node = std::ranges::find(machine_.numa_nodes, wanted["os"].get<int>(), &NumaNode::os_index);
    ASSERT_NE(node, machine_.numa_nodes.end()) << wanted;
    EXPECT_EQ(node->takes_host_memory(), wanted["host_memory"]) << wanted;
    EXPECT_EQ(node->kind == MemoryKind::dram, wanted["dram"]) << wanted;
  }
  for (const int cpu : machine_.allowed) {
    const int node = machine_.memory_node_of(cpu);
    ASSERT_GE(node, 0) << "PU " << cpu;
    EXPECT_TRUE(machine_.numa_nodes[static_cast<size_t>(node)].takes_host_memory()) << "PU " << cpu;
  }
}

TEST_P(Recorded, DevicesHangWhereTheyDo) {
  if (is_refused()) return;
  size_t count = 0;
  Names rdma_cards, net_cards;
  for (const Nic& nic : machine_.nics) {
    if (nic.why_no_rdma.empty()) rdma_cards.insert(nic.card);
    if (nic.why_no_use.empty()) net_cards.insert(nic.card);
  }
  for (const json& wanted : expected_["nics"]) {
    const auto of_function = [&](const Nic& nic) { return nic.pci == wanted["pci"]; };
    for (const Nic& nic : machine_.nics) {
      if (!of_function(nic)) continue;
      ++count;
      EXPECT_EQ(Names(nic.nets.begin(), nic.nets.end()), Names(wanted["nets"])) << wanted;
      EXPECT_EQ(os_index_of_node(nic.place.numa), wanted["numa"]) << wanted;
      EXPECT_EQ(os_index_of_package(nic.place.package), wanted["package"]) << wanted;
      EXPECT_EQ(nic.why_no_rdma.empty(), wanted["usable_rdma"]) << wanted;
      EXPECT_EQ(nic.rdma.empty(), wanted["rdma"].empty()) << wanted;
    }
    EXPECT_TRUE(std::ranges::any_of(machine_.nics, of_function)) << wanted;
  }
  EXPECT_EQ(count, machine_.nics.size()) << "a device that nobody wrote down";
  EXPECT_EQ(rdma_cards.size(), expected_["rdma_cards"]);
  EXPECT_EQ(net_cards.size(), expected_["net_cards"]);
}

TEST_P(Recorded, GpusAreNoDisplays) {
  if (is_refused()) return;
  EXPECT_EQ(Names(machine_.displays.begin(), machine_.displays.end()), Names(expected_["displays"]));
  ASSERT_EQ(machine_.gpus.size(), expected_["gpus"].size());
  for (const json& wanted : expected_["gpus"]) {
    const int gpu = machine_.find_gpu(wanted["pci"]);
    ASSERT_GE(gpu, 0) << wanted;
    const Place& place = machine_.gpus[static_cast<size_t>(gpu)].place;
    EXPECT_EQ(os_index_of_node(place.numa), wanted["numa"]) << wanted;
    EXPECT_EQ(os_index_of_package(place.package), wanted["package"]) << wanted;
  }
}

TEST_P(Recorded, TheNearestDeviceIsChosen) {
  if (is_refused()) return;
  for (const auto& [package, wanted] : expected_["first_core"].items()) {
    const Anchor core{Anchor::Kind::core, machine_.core_of(wanted["pu"])};
    ASSERT_GE(core.index, 0) << package;
    EXPECT_EQ(best_rdma(core), Names(wanted["nearest_rdma"])) << "package " << package;
    EXPECT_EQ(hop_of_best(core), wanted["hop"].is_null()      ? ""
                                 : wanted["hop"] == "machine" ? "across"
                                                              : wanted["hop"])
        << "package " << package;
  }
  for (const json& wanted : expected_["gpu_nic"]) {
    const Anchor gpu{Anchor::Kind::gpu, machine_.find_gpu(wanted["pci"])};
    ASSERT_GE(gpu.index, 0) << wanted;
    EXPECT_EQ(best_rdma(gpu), Names(wanted["nearest_rdma"])) << wanted;
  }
}

TEST_P(Recorded, CanBeShown) {
  if (is_refused()) return;
  for (const Nic& nic : machine_.nics) EXPECT_THAT(to_text(machine_), ::testing::HasSubstr(nic.name() + ":"));
  EXPECT_EQ(to_json(machine_)["cores"].size(), machine_.cores.size());
  const std::string svg =
      to_svg(machine_, std::vector<DrawnRank>{{.cores = {0}, .nic = machine_.nics.empty() ? -1 : 0}});
  for (const Gpu& gpu : machine_.gpus) EXPECT_THAT(svg, ::testing::HasSubstr(">" + gpu.name() + "<"));
  for (int core = 0; core < static_cast<int>(machine_.cores.size()); ++core) {
    const Anchor anchor{Anchor::Kind::core, core};
    EXPECT_FALSE(explain(machine_, anchor, NicUse::any, core).empty());
    EXPECT_EQ(choose_nic(machine_, anchor, NicUse::rdma, core) < 0, expected_["rdma_cards"] == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, Recorded, ::testing::ValuesIn(file_names()), [](const auto& file) {
  std::string name = file.param;
  std::ranges::replace_if(
      name, [](char letter) { return !std::isalnum(static_cast<unsigned char>(letter)); }, '_');
  return name;
});

}  // namespace
}  // namespace tutti::internal
