// The addresses of an RDMA port, and which of them is taken.
#include "src/info/gids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kZero = "0000:0000:0000:0000:0000:0000:0000:0000";
constexpr const char* kLinkLocal = "fe80:0000:0000:0000:0200:00ff:fe00:0001";
constexpr const char* kMapped = "0000:0000:0000:0000:0000:ffff:0a00:0001";
constexpr const char* kUnique = "fd00:0000:0000:0000:0000:0000:0000:0001";

TEST(Gids, TheRoutableOneOfVersion2IsTaken) {
  const auto taken = [](const std::vector<Gid>& gids) {
    const int at = choose_gid(gids);
    return at < 0 ? -1 : gids[static_cast<size_t>(at)].index;
  };
  EXPECT_EQ(taken({{0, kLinkLocal, "IB/RoCE v1", "eth0"},
                   {1, kLinkLocal, "RoCE v2", "eth0"},
                   {2, kMapped, "IB/RoCE v1", "eth0"},
                   {3, kMapped, "RoCE v2", "eth0"}}),
            3);
  EXPECT_EQ(taken({{0, kLinkLocal, "RoCE v2", ""}, {4, kUnique, "RoCE v2", ""}, {6, kMapped, "RoCE v2", ""}}), 4)
      << "the first of equals";
  EXPECT_EQ(taken({{0, kMapped, "IB/RoCE v1", ""}, {1, kLinkLocal, "RoCE v2", ""}}), 1) << "version 2 before version 1";
  EXPECT_EQ(taken({{0, kLinkLocal, "IB/RoCE v1", ""}, {1, kUnique, "IB/RoCE v1", ""}}), 1);
  EXPECT_EQ(taken({{2, kLinkLocal, "RoCE v2", ""}}), 2) << "better than none";
  EXPECT_EQ(taken({}), -1);
}

TEST(Gids, TablesHaveHolesAndAreReadInOrder) {
  const fs::path root = fs::temp_directory_path() / ("tutti-gids-" + std::to_string(getpid()));
  const fs::path port = root / "class/infiniband/rxe0/ports/1";
  const auto write = [&](const std::string& file, const std::string& text) {
    fs::create_directories((port / file).parent_path());
    std::ofstream(port / file) << text << "\n";
  };
  for (const auto& [index, gid] : std::vector<std::pair<std::string, const char*>>{
           {"0", kZero}, {"10", kMapped}, {"2", kLinkLocal}, {"3", kZero}}) {
    write("gids/" + index, gid);
    write("gid_attrs/types/" + index, "RoCE v2");
    write("gid_attrs/ndevs/" + index, "eth0");
  }
  const auto gids = read_gids("rxe0", 1, root);
  ASSERT_THAT(gids, SizeIs(2));
  EXPECT_EQ(gids[0].index, 2);
  EXPECT_EQ(gids[1].index, 10);
  EXPECT_EQ(gids[1].net, "eth0");
  EXPECT_THAT(read_gids("rxe0", 2, root), IsEmpty());
  EXPECT_THAT(read_gids("gone", 1, root), IsEmpty());
  fs::remove_all(root);
}

}  // namespace
}  // namespace tutti::internal
