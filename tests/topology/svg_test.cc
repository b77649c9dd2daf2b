// The drawing: all of it is there, and readable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "machine_files.h"
#include "topology/binding.h"
#include "topology/svg_machine.h"
#include "topology/svg_text.h"

namespace tutti::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tutti_test::synthetic;

size_t count(const std::string& svg, const std::string& text) {
  size_t found = 0;
  for (size_t at = 0; (at = svg.find(text, at)) != std::string::npos; ++at) ++found;
  return found;
}

std::vector<DrawnRank> bound(const Machine& machine, BindUnit unit, int ranks) {
  std::vector<DrawnRank> drawn;
  const auto places = bindings(machine, unit, ranks);
  const NicUse use = use_of_ranks(machine);
  for (int rank = 0; rank < ranks; ++rank) {
    const CpuList& place = places.value()[static_cast<size_t>(rank)];
    drawn.push_back({cores_of(machine, place), choose_nic(machine, place, use, rank)});
  }
  return drawn;
}

Machine with_nics(const std::string& description, int nics) {
  Machine machine = synthetic(description);
  for (int i = 0; i < nics; ++i) {
    Nic nic;
    nic.rdma = "mlx5_" + std::to_string(i);
    nic.card = nic.rdma;
    const int node = i % static_cast<int>(machine.numa_nodes.size());
    nic.place = {
        .cpus = machine.numa_nodes[static_cast<size_t>(node)].cpus, .package = -1, .numa = node, .bridges = {}};
    nic.place.package = machine.package_around(nic.place.cpus);
    machine.nics.push_back(nic);
  }
  return machine;
}

// Every text is within its box, every box within the one around it, and no two boxes of one box overlap.
void expect_tidy(const Box& box) {
  if (box.look != Look::group) {
    EXPECT_LE(text_width(fitting_title(box), kFont), box.width + 0.1) << box.title;
    EXPECT_LE(text_width(fitting_second(box), kSmallFont), box.width + 0.1) << box.second;
  }
  for (size_t i = 0; i < box.children.size(); ++i) {
    const Box& child = box.children[i];
    EXPECT_GE(child.x, box.x - 0.1) << child.title;
    EXPECT_GE(child.y, box.y - 0.1) << child.title;
    EXPECT_LE(child.x + child.width, box.x + box.width + 0.1) << child.title;
    EXPECT_LE(child.y + child.height, box.y + box.height + 0.1) << child.title;
    for (size_t j = 0; j < i; ++j) {
      const Box& other = box.children[j];
      EXPECT_TRUE(child.x >= other.x + other.width || other.x >= child.x + child.width ||
                  child.y >= other.y + other.height || other.y >= child.y + child.height)
          << child.title << " over " << other.title;
    }
    expect_tidy(child);
  }
}

void collect_labels(const Box& box, Look look, std::vector<std::string>& labels) {
  if (box.look == look) labels.push_back(box.title);
  for (const Box& child : box.children) collect_labels(child, look, labels);
}

std::vector<std::string> labels(const Machine& machine, const std::vector<DrawnRank>& ranks, Look look = Look::rank) {
  Box box = machine_box(machine, DrawnRanks(ranks));
  lay_out(box, 0, 0);
  expect_tidy(box);
  std::vector<std::string> found;
  collect_labels(box, look, found);
  std::ranges::sort(found);
  return found;
}

TEST(Svg, RanksOfOneUnitAreSpreadOverItsCores) {
  const Machine machine = synthetic("package:1 group:4 [numa] core:16 pu:4");
  EXPECT_THAT(labels(machine, bound(machine, BindUnit::numa, 8)),
              ::testing::ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
}

TEST(Svg, RanksOfOneCoreAreReadTogether) {
  const Machine machine = synthetic("package:1 core:1 pu:1");
  EXPECT_THAT(labels(machine, bound(machine, BindUnit::core, 3)), ::testing::ElementsAre("0-2"));
  const Machine two = synthetic("package:2 [numa] core:2 pu:1");
  EXPECT_THAT(labels(two, bound(two, BindUnit::numa, 16)), ::testing::ElementsAre("0-3", "12-15", "4-7", "8-11"));
}

TEST(Svg, RanksOfOneCoreWithTwoNicsHaveALineEach) {
  const Machine machine = with_nics("package:1 core:1 pu:2", 2);
  EXPECT_THAT(labels(machine, bound(machine, BindUnit::core, 2)), ::testing::ElementsAre("0", "1"));
  const std::string svg = to_svg(machine, bound(machine, BindUnit::core, 2));
  EXPECT_EQ(count(svg, "class=\"route\""), 2u);
  EXPECT_EQ(count(svg, "class=\"casing\""), 2u);
}

TEST(Svg, NumbersOfAnyLengthFitTheirDisc) {
  const Machine machine = synthetic("package:1 core:200 pu:1");
  const auto found = labels(machine, bound(machine, BindUnit::core, 200));
  EXPECT_EQ(found.size(), 200u);
  EXPECT_THAT(found, ::testing::Contains("199"));
}

TEST(Svg, ManyRanksHaveOneLineFromEachPartToEachNic) {
  const Machine machine = with_nics("package:2 [numa] core:32 pu:1", 2);
  const auto ranks = bound(machine, BindUnit::core, 64);
  EXPECT_EQ(count(to_svg(machine, ranks), "class=\"route\""), 2u);
  EXPECT_THAT(labels(machine, ranks, Look::tag), ::testing::ElementsAre("ranks 0-31", "ranks 32-63"));
  const Machine small = with_nics("package:1 core:1 pu:1", 1);
  EXPECT_THAT(labels(small, bound(small, BindUnit::core, 65536), Look::tag), ::testing::ElementsAre("ranks 0-65535"));
}

TEST(Svg, LinesEndBesideEachOther) {
  const Machine machine = with_nics("package:1 core:4 pu:1", 1);
  const std::string svg = to_svg(machine, bound(machine, BindUnit::core, 4));
  std::set<std::string> ends;
  const std::regex line("x2=\"([0-9.]+)\" y2=\"([0-9.]+)\" class=\"route\"");
  for (std::sregex_iterator found(svg.begin(), svg.end(), line), end; found != end; ++found) ends.insert((*found)[1]);
  EXPECT_EQ(ends.size(), 4u);
}

TEST(Svg, AllNumaNodesAreDrawnOnce) {
  Machine machine = synthetic("[numa(memory=1TiB)] package:2 [numa(memory=96GiB)] [numa(memory=16GiB)] core:2 pu:1");
  NumaNode far;  // as of a GPU, or of an expander: near to no processor
  far.os_index = 252;
  machine.numa_nodes.push_back(far);
  const std::string svg = to_svg(machine, {});
  for (const NumaNode& node : machine.numa_nodes)
    EXPECT_EQ(count(svg, ">" + title_of(node) + "<"), 1u) << node.os_index;
  EXPECT_EQ(count(svg, "class=\"core\""), machine.cores.size() + 1) << "and the legend's";
}

TEST(Svg, TheLegendSaysWhatIsDrawn) {
  Machine machine = with_nics("package:1 core:2 pu:1", 1);
  machine.allowed = {0};
  const auto ranks = bound(machine, BindUnit::core, 1);
  for (const char* text : {">core<", ">not allowed<", ">network device<", ">rank<", "to its RDMA device"})
    EXPECT_THAT(to_svg(machine, ranks), HasSubstr(text));
  EXPECT_THAT(to_svg(machine, ranks), Not(HasSubstr(">GPU<")));
  machine.nics[0].why_no_rdma = "it has no RDMA device";
  EXPECT_THAT(to_svg(machine, ranks), HasSubstr("none has RDMA"));
}

TEST(Svg, AnyBytesMakeValidText) {
  EXPECT_EQ(xml_text("a<b>&\"c\""), "a&lt;b&gt;&amp;\"c\"");
  EXPECT_EQ(xml_text("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  const std::string replacement = "\xef\xbf\xbd";
  for (const char* bad :
       {"\xe9", "\xc3", "\x01", "\x1b", "\n", "\xc0\x80", "\xff", "\x7f", "\xed\xa0\x80", "\xef\xbf\xbf"})
    EXPECT_THAT(xml_text(std::string("a") + bad + "z"), ::testing::MatchesRegex("a(" + replacement + ")+z"));
}

TEST(Svg, LongTextsEndInAnEllipsis) {
  const std::string shorter = shortened(std::string(100, 'x'), kFont, 80);
  EXPECT_THAT(shorter, ::testing::EndsWith("\xe2\x80\xa6"));
  EXPECT_LE(text_width(shorter, kFont), 80);
  EXPECT_EQ(shortened("as it is", kFont, text_width("as it is", kFont)), "as it is");
  Machine machine = synthetic("core:2 pu:1");
  machine.host = std::string(1000, 'W');
  labels(machine, {});
}

TEST(Svg, OfRecordedMachinesIsTidy) {
  namespace fs = std::filesystem;
  if (!fs::exists(TUTTI_RECORDED_MACHINES)) GTEST_SKIP() << "the recorded machines are not here";
  for (const auto& entry : fs::directory_iterator(TUTTI_RECORDED_MACHINES)) {
    const auto machine = Machine::read({MachineSource::Kind::xml_file, entry.path()});
    if (!machine.ok()) continue;
    SCOPED_TRACE(entry.path());
    for (const int ranks : {1, 16, 100})
      for (const BindUnit unit : {BindUnit::core, BindUnit::numa})
        EXPECT_FALSE(labels(machine.value(), bound(machine.value(), unit, ranks)).empty());
  }
}

}  // namespace
}  // namespace tutti::internal
