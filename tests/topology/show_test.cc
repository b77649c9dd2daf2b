// A machine as text and as JSON.
#include "topology/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "machine_files.h"

namespace tutti::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tutti_test::synthetic;

TEST(Show, AllNamesOfADevice) {
  Machine machine = synthetic("core:2 pu:1");
  Nic nic;
  nic.pci = "0000:01:00.0";
  nic.rdma = "mlx4_0";
  nic.nets = {"ib0", "ib1"};
  machine.nics.push_back(nic);
  EXPECT_THAT(summary_text(machine), HasSubstr("NIC mlx4_0 (ib0 ib1): "));
  EXPECT_THAT(to_text(machine), HasSubstr("NIC mlx4_0: net ib0 ib1; 0000:01:00.0; "));
}

TEST(Show, WhatIsNotKnownIsNoEmptyField) {
  Machine machine = synthetic("core:2 pu:1");
  machine.gpus = {{"0000:02:00.0", "", {}, {}}, {"0000:03:00.0", "A100", {"cuda0"}, {}}};
  machine.numa_nodes[0].memory_bytes = 0;
  const std::string text = to_text(machine);
  EXPECT_THAT(text, HasSubstr("GPU 0000:02:00.0: place unknown\n"));
  EXPECT_THAT(text, HasSubstr("GPU cuda0: 0000:03:00.0; A100; place unknown\n"));
  EXPECT_THAT(text, HasSubstr("NUMA node 0: no memory shown, PUs 0-1\n"));
  EXPECT_EQ(to_json(machine)["numa_nodes"][0]["memory_bytes"], nullptr);
}

TEST(Show, NamesOfAnyBytesAreJson) {
  Machine machine = synthetic("core:2 pu:1");
  machine.source = "file caf\xe9.xml";
  machine.host = "\xff";
  machine.nics.emplace_back().nets = {"\xc3"};
  for (const auto& json : {to_json(machine), summary_json(machine)}) {
    EXPECT_EQ(json["source"], "file caf\xef\xbf\xbd.xml");
    EXPECT_NO_THROW((void)json.dump());
  }
}

}  // namespace
}  // namespace tutti::internal
