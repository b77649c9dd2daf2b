// This host where it hides a part of itself, or where hwloc is told to show another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "machine_files.h"
#include "topology/show.h"

namespace tutti::internal {
namespace {

using tutti_test::Folder;
using tutti_test::in_child;

// hwloc 2.9 would end the process.
TEST(ThisHost, WithAnEmptyFolderOfNumaNodesIsAnError) {
  const Folder root;
  std::filesystem::create_directories(root / "sys/devices/system/node");
  EXPECT_EQ(in_child([&] {
              setenv("HWLOC_FSROOT", (root / "").c_str(), 1);
              const auto machine = Machine::read(MachineSource());
              return machine.status().code() == Code::unsupported &&
                     machine.status().message().find("sys/devices/system/node is empty") != std::string::npos;
            }),
            0);
}

// What hwloc makes up of processors that it has to ask themselves is not told as a fact.
TEST(ThisHost, WhoseSysIsHiddenHasNoNumbers) {
  const Folder root;
  EXPECT_EQ(in_child([&] {
              setenv("HWLOC_FSROOT", (root / "").c_str(), 1);
              setenv("HWLOC_THISSYSTEM", "1", 1);
              const auto machine = Machine::read(MachineSource());
              if (!machine.ok()) return false;
              const std::string text = to_text(machine.value());
              const auto json = to_json(machine.value());
              return text.find(" 0 B") == std::string::npos && text.find("package -1") == std::string::npos &&
                     text.find("/sys is hidden") != std::string::npos && json["cores"][0]["os_index"].is_null() &&
                     (json["packages"].empty() || json["packages"][0]["os_index"].is_null());
            }),
            0);
}

TEST(ThisHost, IsNotWhatAVariableOfHwlocsShows) {
  EXPECT_EQ(in_child([&] {
              setenv("HWLOC_SYNTHETIC", "package:2 core:8 pu:2", 1);
              const auto machine = Machine::read(MachineSource());
              return machine.ok() && !machine.value().is_this_host &&
                     machine.value().source == "HWLOC_SYNTHETIC=package:2 core:8 pu:2";
            }),
            0);
}

}  // namespace
}  // namespace tutti::internal
