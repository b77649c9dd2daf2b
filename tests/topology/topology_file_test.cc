// Files that are given as a machine: what is taken, and what is refused, at once and with the reason.
#include "topology/topology_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "machine_files.h"
#include "topology/binding.h"

namespace tutti::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tutti_test::Folder;
using tutti_test::in_child;
using tutti_test::record;

std::string two_packages() { return tutti_test::content_of(TUTTI_MACHINES "/two_packages.xml"); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

void expect_refused(const std::string& path, const std::string& why) {
  const auto machine = Machine::read({MachineSource::Kind::xml_file, path});
  ASSERT_FALSE(machine.ok()) << path;
  EXPECT_EQ(machine.status().code(), Code::invalid_argument);
  EXPECT_THAT(machine.status().message(), AllOf(HasSubstr(path), HasSubstr(why)));
}

TEST(TopologyFile, IsReadWhole) {
  const auto text = read_topology_file(TUTTI_MACHINES "/two_packages.xml");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text.value(), two_packages());
}

TEST(TopologyFile, ThatIsNoRegularFileIsRefusedAtOnce) {
  const Folder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  expect_refused(fifo, "must be a regular file");
  expect_refused("/dev/zero", "must be a regular file");
  expect_refused("/dev/null", "must be a regular file");
  expect_refused(folder / "", "a folder");
}

TEST(TopologyFile, ThatIsTooLargeIsRefusedWithTheLimit) {
  const Folder folder;
  const std::string path = folder.write("large.xml", "");
  std::filesystem::resize_file(path, size_t{1} << 40);  // a hole
  expect_refused(path, "it has 1099511627776 bytes: at most 67108864");
}

// What stands before the root element is not asked for the version, and what is in it in any quotes is.
TEST(TopologyFile, TheVersionIsThatOfTheRootElement) {
  const Folder folder;
  const std::string start = "<topology version=\"2.0\">", prolog = "<!DOCTYPE";
  const auto with_root = [&](const std::string& root) {
    return folder.write("file.xml", replaced(two_packages(), start, root));
  };
  const std::string commented =
      folder.write("commented.xml",
                   replaced(two_packages(), prolog, "<!-- <topology version=\"9.0\"> written by > us -->" + prolog));
  EXPECT_TRUE(Machine::read({MachineSource::Kind::xml_file, commented}).ok());
  expect_refused(folder.write("none.xml", "<!-- <topology version=\"2.0\"> --><html></html>"), "no <topology> element");
  expect_refused(folder.write("like.xml", "<topologyx version=\"2.0\"></topology>"), "no <topology> element");
  expect_refused(with_root("<topology version=\"3.0\">"), "XML version 3.0");
  expect_refused(with_root("<topology  version='3.1'>"), "XML version 3.1");
  expect_refused(with_root("<topology version=\"4294967298.0\">"), "XML version 4294967298.0");
  expect_refused(with_root("<topology version=\"99999999999999999999\">"), "XML version 99999999999999999999");
  expect_refused(with_root("<topology version=\"two\">"), "version is 'two'");
  expect_refused(with_root("<topology version=\"-2\">"), "version is '-2'");
}

std::string description_of(const CpuList& cpus) {
  std::string indexes;
  for (const int cpu : cpus) indexes += (indexes.empty() ? "" : ",") + std::to_string(cpu);
  return "core:" + std::to_string(cpus.size()) + " pu:1(indexes=" + indexes + ")";
}

TEST(TopologyFile, OfThisHostSaysWhatThisProcessMayUse) {
  const Folder folder;
  const std::string path = folder / "this.xml";
  record(description_of(own_cpus()), path);
  EXPECT_EQ(in_child([&] {
              const int one = own_cpus().back();
              CpuMask({one}).bind_this_thread();
              const auto machine = Machine::this_host_by_file(path);
              return machine.ok() && machine.value().allowed == CpuList{one};
            }),
            0);
  const auto machine = Machine::this_host_by_file(path);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine.value().allowed, own_cpus());
  EXPECT_THAT(machine.value().source, HasSubstr("TUTTI_TOPOLOGY_FILE"));
}

TEST(TopologyFile, OfAnotherMachineDoesNotStandForThisHost) {
  const Folder folder;
  const std::string path = folder / "other.xml";
  record("core:2 pu:1(indexes=1000,1001)", path);
  for (const auto& machine : {Machine::this_host_by_file(path), machine_to_bind_on(path)}) {
    EXPECT_EQ(machine.status().code(), Code::invalid_argument);
    EXPECT_THAT(machine.status().message(), AllOf(HasSubstr("TUTTI_TOPOLOGY_FILE"), HasSubstr(path),
                                                  HasSubstr("processors 1000-1001"), HasSubstr(to_string(own_cpus()))));
  }
}

}  // namespace
}  // namespace tutti::internal
