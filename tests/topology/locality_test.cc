// Which device is for whom, and the sentence for each choice.
#include "topology/locality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tutti::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Machine two_packages() {
  auto machine = Machine::read({MachineSource::Kind::xml_file, TUTTI_MACHINES "/two_packages.xml"});
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return machine.ok() ? machine.value() : Machine();
}

Anchor at(const Machine& machine, const std::string& text) {
  const auto anchor = Anchor::parse(text, machine);
  EXPECT_TRUE(anchor.ok()) << anchor.status().message();
  return anchor.ok() ? anchor.value() : Anchor();
}

std::vector<std::string> names(const Machine& machine, const std::vector<Candidate>& candidates) {
  std::vector<std::string> result;
  for (const Candidate& candidate : candidates)
    result.push_back(machine.nics[static_cast<size_t>(candidate.nic)].name());
  return result;
}

TEST(Locality, NearDevicesComeFirst) {
  const Machine machine = two_packages();
  const auto of = [&](const char* place) {
    return names(machine, rank_nics(machine, at(machine, place), NicUse::rdma));
  };
  EXPECT_THAT(of("core:0"), ElementsAre("mlx5_0", "mlx5_1", "mlx5_2"));
  EXPECT_THAT(of("core:7"), ElementsAre("mlx5_1", "mlx5_2", "mlx5_0"));
  EXPECT_THAT(of("numa:1"), ElementsAre("mlx5_1", "mlx5_2", "mlx5_0"));
  EXPECT_THAT(of("gpu:cuda0"), ElementsAre("mlx5_0", "mlx5_1", "mlx5_2"));
}

TEST(Locality, HopsAreTold) {
  const Machine machine = two_packages();
  const auto first = [&](const char* place) {
    return rank_nics(machine, at(machine, place), NicUse::rdma).front().hop;
  };
  EXPECT_EQ(first("gpu:0"), Hop::same_switch);
  EXPECT_EQ(first("gpu:1"), Hop::same_root_complex);
  EXPECT_EQ(first("core:0"), Hop::same_numa);
  EXPECT_EQ(rank_nics(machine, at(machine, "core:0"), NicUse::rdma).back().hop, Hop::across);
}

TEST(Locality, ASlowPortNearbyIsNoMatchForAFastOneAcross) {
  const Machine machine = two_packages();
  const auto all = rank_nics(machine, at(machine, "core:0"), NicUse::any);
  EXPECT_THAT(names(machine, all), ElementsAre("mlx5_0", "mlx5_1", "mlx5_2", "usnic_0", "eth0"));
  EXPECT_TRUE(all.back().is_slow);
}

TEST(Locality, RanksSpreadOverEquals) {
  const Machine machine = two_packages();
  const auto chosen = [&](int rank) {
    return machine.nics[static_cast<size_t>(choose_nic(machine, at(machine, "core:4"), NicUse::rdma, rank))].rdma;
  };
  EXPECT_EQ(chosen(0), "mlx5_1");
  EXPECT_EQ(chosen(1), "mlx5_2");
  EXPECT_EQ(chosen(2), "mlx5_1");
}

TEST(Locality, RailsAreNearAndOnDistinctCards) {
  Machine machine = two_packages();
  const auto of = [&](int rank) {
    std::vector<std::string> result;
    for (const Rail& rail : rails(machine, at(machine, "core:4"), NicUse::rdma, rank))
      result.push_back(machine.nics[static_cast<size_t>(rail.nic)].rdma);
    return result;
  };
  EXPECT_THAT(of(0), ElementsAre("mlx5_1")) << "two ports of one card are one rail";
  EXPECT_THAT(of(1), ElementsAre("mlx5_2")) << "a rank keeps the port that is its own";
  // A second card at the same place, half as fast: it takes a third.
  Nic slower = machine.nics[static_cast<size_t>(machine.find_nic("mlx5_1"))];
  slower.rdma = "mlx5_8";
  slower.card = "0000:90:00";
  slower.pci_gbytes /= 2;
  machine.nics.push_back(slower);
  EXPECT_THAT(of(0), ElementsAre("mlx5_1", "mlx5_8"));
  EXPECT_NEAR(rails(machine, at(machine, "core:4"), NicUse::rdma, 0)[1].share, 1.0 / 3, 1e-6);
}

TEST(Locality, EverySentenceHasItsReason) {
  const Machine machine = two_packages();
  const std::string text = explain(machine, at(machine, "core:0"), NicUse::rdma, 0);
  EXPECT_THAT(text, HasSubstr("mlx5_0 (ib0): taken: same NUMA node, 31.5 GB/s"));
  EXPECT_THAT(text, HasSubstr("mlx5_1 (eth1): passed over, further away: across, 15.8 GB/s"));
  EXPECT_THAT(text, HasSubstr("usnic_0 (eth3): not usable: usNIC"));
  EXPECT_THAT(text, HasSubstr("eth0: not usable: it has no RDMA device"));
  EXPECT_THAT(text, HasSubstr("0000:81:00.2: not usable:"));
  const std::string any = explain(machine, at(machine, "core:4"), NicUse::any, 1);
  EXPECT_THAT(any, HasSubstr("mlx5_2 (eth2): taken, one of 2 equals, by local rank"));
  EXPECT_THAT(any, HasSubstr("mlx5_1 (eth1): as good, for other ranks"));
  EXPECT_THAT(any, HasSubstr("eth0: passed over, far slower"));
  EXPECT_THAT(any, HasSubstr("usnic_0 (eth3): passed over, further away: across (it does not say where it hangs)"));
}

TEST(Locality, WithoutDevicesThereIsNoChoice) {
  const auto machine = Machine::read({MachineSource::Kind::synthetic, "core:2 pu:1"});
  ASSERT_TRUE(machine.ok());
  const Anchor anchor = at(machine.value(), "core:1");
  EXPECT_EQ(choose_nic(machine.value(), anchor, NicUse::any, 3), -1);
  EXPECT_THAT(rails(machine.value(), anchor, NicUse::any, 3), IsEmpty());
  EXPECT_THAT(explain(machine.value(), anchor, NicUse::any, 3), HasSubstr("shows no network device"));
}

TEST(Locality, OfEqualsWithoutASpeedOneWithRdmaComesFirst) {
  Machine machine = two_packages();
  for (Nic& nic : machine.nics) nic.pci_gbytes = nic.port_gbytes = 0;
  std::ranges::reverse(machine.nics);  // eth0 before mlx5_0
  const auto ranked = rank_nics(machine, at(machine, "core:0"), NicUse::any);
  EXPECT_EQ(names(machine, ranked).front(), "mlx5_0");
  EXPECT_EQ(equals(machine, ranked), 1u) << "ranks are not spread over what has RDMA and what has none";
  EXPECT_THAT(explain(machine, at(machine, "core:0"), NicUse::any, 1), HasSubstr("eth0: passed over, without RDMA"));
}

TEST(Locality, RanksUseRdmaWhereAnyDeviceHasIt) {
  Machine machine = two_packages();
  EXPECT_EQ(use_of_ranks(machine), NicUse::rdma);
  for (Nic& nic : machine.nics) nic.why_no_rdma = "it has no RDMA device";
  EXPECT_EQ(use_of_ranks(machine), NicUse::any);
}

TEST(Locality, ARankOnManyCoresIsNearToWhatIsNearToAll) {
  const Machine machine = two_packages();
  const auto chosen = [&](const CpuList& cpus, int rank) {
    return machine.nics[static_cast<size_t>(choose_nic(machine, cpus, NicUse::rdma, rank))].rdma;
  };
  EXPECT_EQ(chosen(machine.packages[1].cpus, 0), "mlx5_1");
  EXPECT_EQ(chosen(machine.packages[1].cpus, 1), "mlx5_2");
  EXPECT_EQ(chosen(machine.all_cpus(), 1), "mlx5_0") << "near to none: the fastest";
}

TEST(Locality, PlacesThatAreNoneAreRefusedWithThoseThatAre) {
  const Machine machine = two_packages();
  const auto why = [&](const std::string& text) {
    const auto anchor = Anchor::parse(text, machine);
    EXPECT_EQ(anchor.status().code(), Code::invalid_argument) << text;
    return anchor.status().message();
  };
  for (const char* text : {"core:8", "numa:7", "gpu:cuda7", "gpu:2", "", "core", "core:", "core:x", "core:-1",
                           "core:1x", "node:0", ":0", "core:99999999999"})
    EXPECT_EQ(why(text), "'" + std::string(text) +
                             "' is no place of this machine: it has core:0 to core:7; numa:0, numa:1; gpu:0 (cuda0), "
                             "gpu:1 (cuda1)");
  const auto bare = Machine::read({MachineSource::Kind::synthetic, "core:1 pu:1"});
  EXPECT_THAT(Anchor::parse("core:7", bare.value()).status().message(), HasSubstr("it has core:0; numa:0; no GPU"));
}

}  // namespace
}  // namespace tutti::internal
