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
  EXPECT_EQ(count("class=\"rank\""), 4);
  EXPECT_EQ(count("class=\"route\""), 4);
  EXPECT_EQ(count("class=\"core\""), 8);
  EXPECT_EQ(count("class=\"nic\""), 5) << "a virtual function without a device is not drawn";
  EXPECT_EQ(count("class=\"gpu\""), 2);
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
  EXPECT_THAT(ran.text, HasSubstr("mlx5_0: taken: same PCI switch"));
  EXPECT_THAT(info(kTwoPackages + "--explain core:4 --local-rank 1").text,
              HasSubstr("mlx5_2: taken, one of 2 equals, by local rank"));
  const Ran wrong = info(kTwoPackages + "--explain core:99");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.text, HasSubstr("from core:0 to core:7"));
}

TEST(Info, SettingsAndWhereTheyComeFrom) {
  const Ran ran = info("--config", "TUTTI_TIMEOUT=7");
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.text, HasSubstr("TUTTI_TIMEOUT = 7\n  from environment"));
  EXPECT_THAT(ran.text, HasSubstr("TUTTI_LOG = warn\n  from default"));
}

TEST(Info, TheMachineMayBeNamedByASetting) {
  EXPECT_THAT(info("", "TUTTI_TOPOLOGY_FILE=" TUTTI_MACHINES "/two_packages.xml").text, StartsWith("two-packages"));
  EXPECT_THAT(info("--synthetic 'package:3 core:2 pu:1'").text, HasSubstr("3 packages"));
}

TEST(Info, UsageErrorsAndWhatCannotBeReadAreTold) {
  for (const char* arguments : {"--json", "--svg x", "--topology --json --svg x", "--topology --ranks 3", "--bogus",
                                "--topology --svg x --ranks 0", "--local-rank -1", "rubbish"}) {
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
  EXPECT_EQ(info("--topology >/dev/full").status, 1);
}

}  // namespace
