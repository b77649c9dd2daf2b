// tutti-info as people start it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Ran {
  int status = -1;
  std::string text;  // of both streams
};

Ran info(const std::string& arguments, const std::string& environment = "") {
  const std::string command = environment + " " TUTTI_INFO " " + arguments + " 2>&1";
  Ran ran;
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) ran.text.append(buffer.data(), got);
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

const std::string kTwoPackages = "--xml " TUTTI_MACHINES "/two_packages.xml ";

TEST(Info, SummaryOfThisHost) {
  const Ran ran = info("");
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_THAT(ran.text, AllOf(HasSubstr("(this host)"), HasSubstr("allowed")));
}

TEST(Info, TopologyOfAFileAsTextAndAsJson) {
  const Ran text = info(kTwoPackages + "--topology");
  EXPECT_EQ(text.status, 0) << text.text;
  EXPECT_THAT(text.text, AllOf(StartsWith("two-packages (file "), HasSubstr("NIC mlx5_0: net ib0; 0000:01:00.0"),
                               HasSubstr("GPU cuda1"), HasSubstr("display 0000:04:00.0: no GPU")));
  const auto json = nlohmann::json::parse(info(kTwoPackages + "--topology --json").text);
  EXPECT_EQ(json["host"], "two-packages");
  EXPECT_EQ(json["nics"].size(), 6u);
  EXPECT_EQ(json["nics"][0]["place"]["numa_node"], 0);
  EXPECT_EQ(json["nics"][0]["port_gbytes"], nullptr) << "what is unknown is null";
}

TEST(Info, TheDrawingHasRanksAndALineToTheNicOfEach) {
  const auto file = std::filesystem::temp_directory_path() / ("tutti-info-" + std::to_string(getpid()) + ".svg");
  const Ran ran = info(kTwoPackages + "--topology --ranks 4 --bind l3 --svg " + file.string());
  EXPECT_EQ(ran.status, 0) << ran.text;
  std::ifstream stream(file);
  const std::string svg{std::istreambuf_iterator<char>(stream), {}};
  std::filesystem::remove(file);
  const auto count = [&](const std::string& pattern) {
    const std::regex regex(pattern);
    return std::distance(std::sregex_iterator(svg.begin(), svg.end(), regex), std::sregex_iterator());
  };
  EXPECT_THAT(svg, StartsWith("<svg "));
  // And one of each in the legend.
  EXPECT_EQ(count("class=\"rank\""), 5);
  EXPECT_EQ(count("class=\"route\""), 4);
  EXPECT_EQ(count("class=\"core\""), 9);
  EXPECT_EQ(count("class=\"nic\""), 6) << "a virtual function without a device is not drawn";
  EXPECT_EQ(count("class=\"gpu\""), 3);
}

TEST(Info, EachDeviceSaysWhetherItIsUsableAndWhyNot) {
  const Ran ran = info(kTwoPackages + "--devices");
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.text,
              AllOf(HasSubstr("mlx5_0: net ib0"), HasSubstr(": usable for RDMA"), HasSubstr("usnic_0: net eth3"),
                    HasSubstr("no RDMA: usNIC has datagrams only"), HasSubstr("0000:81:00.2: ")));
}

TEST(Info, ExplainsAChoice) {
  const Ran ran = info(kTwoPackages + "--explain gpu:cuda0");
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.text, HasSubstr("mlx5_0 (ib0): taken: same PCI switch"));
  EXPECT_THAT(info(kTwoPackages + "--explain core:4 --local-rank 1").text,
              HasSubstr("mlx5_2 (eth2): taken, one of 2 equals, by local rank"));
  const Ran wrong = info(kTwoPackages + "--explain core:99");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.text, HasSubstr("core:0 to core:7; numa:0, numa:1; gpu:0 (cuda0), gpu:1 (cuda1)"));
}

TEST(Info, SettingsAndWhereTheyComeFrom) {
  const Ran ran = info("--config", "TUTTI_TIMEOUT=7");
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.text, HasSubstr("TUTTI_TIMEOUT = 7\n  from environment"));
  EXPECT_THAT(ran.text, HasSubstr("TUTTI_LOG = warn\n  from default"));
}

// Files that a test makes.
class InfoFiles : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }
  static std::string content(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("tutti-info-files-" + std::to_string(getpid()));
};

// A processor that the recorded machines have.
bool may_use_processor_0() { return info("--version", "taskset -c 0").status == 0; }

TEST(Info, TheMachineMayBeNamedByASetting) {
  if (!may_use_processor_0()) GTEST_SKIP() << "processor 0 is not allowed here";
  const Ran ran = info("--topology", "TUTTI_TOPOLOGY_FILE=" TUTTI_MACHINES "/two_packages.xml taskset -c 0");
  EXPECT_THAT(ran.text, AllOf(StartsWith("two-packages"), HasSubstr("(TUTTI_TOPOLOGY_FILE)"),
                              HasSubstr("1 of 8 PUs allowed (0)"), HasSubstr("none allowed")));
  EXPECT_THAT(info("--synthetic 'package:3 core:2 pu:1'").text, HasSubstr("3 packages"));
}

TEST_F(InfoFiles, AFileOfAnotherMachineIsRefused) {
  if (!may_use_processor_0()) GTEST_SKIP() << "processor 0 is not allowed here";
  std::string other = content(TUTTI_MACHINES "/one_core_each.xml");
  other = std::regex_replace(other, std::regex("0x0000000([123])"), "0x$010000000");
  for (const int pu : {0, 1})
    other = std::regex_replace(other, std::regex("type=\"PU\" os_index=\"" + std::to_string(pu) + "\""),
                               "type=\"PU\" os_index=\"" + std::to_string(pu + 28) + "\"");
  std::ofstream(path("other.xml")) << other;
  const Ran ran = info("", "TUTTI_TOPOLOGY_FILE=" + path("other.xml") + " taskset -c 0");
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.text, AllOf(HasSubstr("of another machine"), HasSubstr("processors 28-29"), HasSubstr("may use 0")));
}

TEST(Info, AVariableOfHwlocsIsNamedAsTheSource) {
  const Ran ran = info("", "HWLOC_SYNTHETIC='package:2 core:3 pu:1'");
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.text,
              AllOf(HasSubstr("warning: HWLOC_SYNTHETIC=package:2 core:3 pu:1 makes hwloc show another machine"),
                    HasSubstr("(HWLOC_SYNTHETIC="), ::testing::Not(HasSubstr("(this host)"))));
}

TEST_F(InfoFiles, AnyNameOfAFileIsShown) {
  const std::string name = path("caf\xe9.xml");
  std::filesystem::copy_file(TUTTI_MACHINES "/two_packages.xml", name);
  const Ran ran = info("--topology --json --xml " + name);
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(nlohmann::json::parse(ran.text)["source"], HasSubstr("caf\xef\xbf\xbd.xml"));
}

TEST_F(InfoFiles, ADrawingIsWrittenWholeOrNotAtAll) {
  std::ofstream(path("old.svg")) << "old";
  const std::string draw = kTwoPackages + "--topology --svg " + path("old.svg");
  EXPECT_EQ(info(draw, "trap '' XFSZ; ulimit -f 1;").status, 1);
  EXPECT_EQ(content(path("old.svg")), "old");
  EXPECT_EQ(file_count(), 1u) << "nothing is left beside it";
  std::filesystem::create_symlink("old.svg", path("link.svg"));
  EXPECT_EQ(info(kTwoPackages + "--topology --svg " + path("link.svg")).status, 0);
  EXPECT_THAT(content(path("old.svg")), StartsWith("<svg "));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.svg")));
  EXPECT_EQ(file_count(), 2u);
  EXPECT_EQ(info(kTwoPackages + "--topology --svg -").text, content(path("old.svg")));
  EXPECT_EQ(info(kTwoPackages + "--topology --svg /dev/null").status, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(Info, MoreRanksThanCoresAreWarnedOf) {
  const Ran ran = info("--synthetic 'package:1 core:2 pu:1' --topology --svg /dev/null --ranks 3 --bind package");
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.text, HasSubstr("warning: 3 ranks share 2 cores (0-1)"));
  EXPECT_EQ(info("--synthetic 'package:1 core:2 pu:1' --topology --svg /dev/null --ranks 3 --bind none").text, "");
}

// A rank's line goes where its messages would.
TEST(Info, RanksAreDrawnWithRdmaDevices) {
  std::string svg = info(kTwoPackages + "--topology --ranks 2 --svg -").text;
  EXPECT_THAT(svg, HasSubstr("from a rank to its RDMA device"));
}

TEST(Info, UsageErrorsAndWhatCannotBeReadAreTold) {
  for (const char* arguments :
       {"--json", "--svg x", "--topology --json --svg x", "--topology --ranks 3", "--bogus",
        "--topology --svg x --ranks 0", "--local-rank -1", "rubbish", "--topology --svg ''", "--xml ''",
        "--synthetic ''", "--explain ''", "--explain nowhere", "--explain core:999999"}) {
    const Ran ran = info(arguments);
    EXPECT_EQ(ran.status, 2) << arguments << ": " << ran.text;
    EXPECT_THAT(ran.text, StartsWith("tutti-info: ")) << arguments;
  }
  const Ran missing = info("--xml /nowhere.xml");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.text, HasSubstr("/nowhere.xml: No such file"));
  const Ran unwritable = info("--topology --svg /nowhere/x.svg");
  EXPECT_EQ(unwritable.status, 1);
  EXPECT_THAT(unwritable.text, HasSubstr("/nowhere/x.svg"));
  for (const char* arguments : {"--topology", "--help", "--version", "--config", "--topology --svg -"})
    EXPECT_EQ(info(std::string(arguments) + " >/dev/full").status, 1) << arguments;
}

TEST(Info, OptionsThatDoNotGoTogetherAreBothNamed) {
  struct Pair {
    const char *arguments, *one, *other;
  };
  for (const Pair& pair : {Pair{"--topology --devices", "--topology", "--devices"},
                           {"--devices --config", "--devices", "--config"},
                           {"--explain core:0 --topology", "--explain", "--topology"},
                           {"--config --xml x", "--config", "--xml"},
                           {"--config --synthetic core:2", "--config", "--synthetic"},
                           {"--xml x --synthetic core:2", "--xml", "--synthetic"},
                           {"--bind core", "--bind", "--ranks"},
                           {"--local-rank 0", "--local-rank", "--explain"},
                           {"--devices --json", "--json", "--topology"}}) {
    const Ran ran = info(pair.arguments);
    EXPECT_EQ(ran.status, 2) << pair.arguments;
    EXPECT_THAT(ran.text, AllOf(HasSubstr(pair.one), HasSubstr(pair.other))) << pair.arguments;
  }
}

}  // namespace
