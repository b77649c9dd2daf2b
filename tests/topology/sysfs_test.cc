// What only the running kernel knows, from a tree of files as it shows them.
#include "topology/sysfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "topology/locality.h"

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A folder that stands for /sys, beside the machine of two packages: eth0 on the first, eth1 and eth2 on the second.
class SysfsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("tutti-sysfs-" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    auto machine = Machine::read({MachineSource::Kind::xml_file, TUTTI_MACHINES "/two_packages.xml"});
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    machine_ = *machine;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  void make_port(const std::string& rdma, const std::string& state, const std::string& rate,
                 const std::string& link_layer) {
    const std::string folder = "class/infiniband/" + rdma + "/ports/1/";
    write(folder + "state", state);
    write(folder + "rate", rate);
    write(folder + "link_layer", link_layer);
  }
  void make_rxe(const std::string& rdma, const std::string& parent) {
    make_port(rdma, "4: ACTIVE", "2.5 Gb/sec (1X SDR)", "Ethernet");
    write("class/infiniband/" + rdma + "/parent", parent);
  }
  void put_above(const std::string& upper, const std::string& lower) {
    fs::create_directories(root_ / "class/net" / upper);
    fs::create_directories(root_ / "class/net" / lower);
    fs::create_symlink("../" + lower, root_ / "class/net" / upper / ("lower_" + lower));
  }
  Nic nic(const std::string& name) {
    add_facts_of_sysfs(machine_, root_);
    const int found = machine_.find_nic(name);
    EXPECT_GE(found, 0) << name;
    return found < 0 ? Nic() : machine_.nics[static_cast<size_t>(found)];
  }

  fs::path root_;
  Machine machine_;
};

TEST_F(SysfsTest, PortsAndTheirSpeed) {
  make_port("mlx5_0", "4: ACTIVE", "100 Gb/sec (4X EDR)", "InfiniBand");
  const Nic found = nic("mlx5_0");
  ASSERT_THAT(found.ports, SizeIs(1));
  EXPECT_EQ(found.ports[0].state, "ACTIVE");
  EXPECT_EQ(found.ports[0].link_layer, "InfiniBand");
  EXPECT_EQ(found.ports[0].gigabits, 100);
  EXPECT_EQ(found.port_gbytes, 12.5);
  EXPECT_EQ(found.gbytes(), 12.5) << "the port is narrower than its PCI link";
}

TEST_F(SysfsTest, APortThatIsDownIsNotUsable) {
  make_port("mlx5_0", "1: DOWN", "10 Gb/sec (4X SDR)", "InfiniBand");
  EXPECT_EQ(nic("mlx5_0").why_no_rdma, "its port 1 is DOWN");
  EXPECT_NE(choose_nic(machine_, {Anchor::Kind::core, 0}, NicUse::rdma, 0), machine_.find_nic("mlx5_0"));
}

TEST_F(SysfsTest, ASoftwareDeviceHangsWhereItsNetDeviceDoes) {
  make_rxe("rxe0", "eth1");
  const Nic found = nic("rxe0");
  EXPECT_EQ(found.place.package, 1);
  EXPECT_EQ(found.placed_by, "eth1");
  EXPECT_EQ(found.card, "0000:81:00");
  EXPECT_EQ(found.why_no_rdma, "");
  EXPECT_FALSE(found.place.is_guessed);
}

TEST_F(SysfsTest, WithoutAParentTheFirstGidTells) {
  make_port("siw0", "4: ACTIVE", "", "Ethernet");
  write("class/infiniband/siw0/ports/1/gid_attrs/ndevs/0", "eth0");
  EXPECT_EQ(nic("siw0").place.package, 0);
}

TEST_F(SysfsTest, AVlanHangsWhereTheDeviceUnderItDoes) {
  put_above("eth1.100", "eth1");
  make_rxe("rxe0", "eth1.100");
  const Nic found = nic("rxe0");
  EXPECT_EQ(found.place.package, 1);
  EXPECT_EQ(found.placed_by, "eth1 below eth1.100");
}

TEST_F(SysfsTest, ABondHasWhatItsDevicesHaveInCommon) {
  put_above("bond0", "eth1");
  put_above("bond0", "eth2");
  put_above("bond1", "eth0");
  put_above("bond1", "eth1");
  make_rxe("rxe0", "bond0");
  make_rxe("rxe1", "bond1");
  EXPECT_EQ(nic("rxe0").place.package, 1);
  const Nic across = machine_.nics[static_cast<size_t>(machine_.find_nic("rxe1"))];
  EXPECT_EQ(across.place.package, -1);
  EXPECT_EQ(across.placed_by, "eth0 and eth1 below bond1");
}

TEST_F(SysfsTest, WhatHangsOnNothingIsMarkedAsAGuess) {
  make_rxe("rxe0", "veth7");
  const Nic found = nic("rxe0");
  EXPECT_TRUE(found.place.is_guessed);
  EXPECT_EQ(found.place.package, -1);
  EXPECT_THAT(found.placed_by, HasSubstr("veth7 hangs on no device"));
}

TEST_F(SysfsTest, LoopsOfLayersEnd) {
  put_above("a", "b");
  put_above("b", "a");
  make_rxe("rxe0", "a");
  EXPECT_TRUE(nic("rxe0").place.is_guessed);
}

TEST_F(SysfsTest, ADeviceThatVanishesLeavesFewerFacts) {
  make_port("mlx5_0", "4: ACTIVE", "100 Gb/sec (4X EDR)", "InfiniBand");
  fs::remove(root_ / "class/infiniband/mlx5_0/ports/1/state");
  fs::remove(root_ / "class/infiniband/mlx5_0/ports/1/rate");
  const Nic found = nic("mlx5_0");
  EXPECT_EQ(found.port_gbytes, 0);
  EXPECT_EQ(found.why_no_rdma, "") << "nobody says that it is down";
}

TEST_F(SysfsTest, HiddenItAddsNothing) {
  fs::remove_all(root_);
  const size_t before = machine_.nics.size();
  add_facts_of_sysfs(machine_, root_);
  EXPECT_EQ(machine_.nics.size(), before);
  for (const Nic& one : machine_.nics) EXPECT_THAT(one.ports, IsEmpty());
}

TEST_F(SysfsTest, AnUnknownSpeedIsNone) {
  write("class/net/eth0/speed", "-1");
  EXPECT_EQ(nic("eth0").port_gbytes, 0);
  write("class/net/eth0/speed", "1000");
  EXPECT_EQ(nic("eth0").port_gbytes, 0.125);
}

}  // namespace
}  // namespace tutti::internal
