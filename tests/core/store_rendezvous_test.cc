// How a rank finds out where its store is: the caller's words, the environment, the file, and the forms of addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "src/core/store/host_port.h"
#include "src/core/store/store_file.h"
#include "store_world.h"

namespace tutti::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// An environment with nothing of ours but what is given.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& values) {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID", "SLURM_NTASKS",
          "TORCHELASTIC_USE_AGENT_STORE", "TUTTI_STORE_FILE", "TUTTI_STORE_SERVED", "TUTTI_SECRET"})
      unsetenv(name);
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
    auto config = Config::load({});
    EXPECT_TRUE(config.ok()) << config.status().message();
    if (config.ok()) config_ = std::move(*config);
  }
  ~Environment() {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE",
                             "TUTTI_STORE_FILE", "TUTTI_STORE_SERVED", "TUTTI_SECRET"})
      unsetenv(name);
  }
  Result<Rendezvous> find(int rank = -1, int size = 0, const std::string& store = "") const {
    return find_rendezvous(rank, size, store, config_);
  }

 private:
  Config config_;
};

TEST(Rendezvous, ByTheEnvironmentOfTorchrunsNames) {
  const Environment environment(
      {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node-1"}, {"MASTER_PORT", "29500"}, {"TUTTI_SECRET", "s"}});
  auto found = environment.find();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->kind, Rendezvous::Kind::address);
  EXPECT_EQ(found->rank, 1);
  EXPECT_EQ(found->size, 4);
  EXPECT_EQ(found->host, "node-1");
  EXPECT_EQ(found->ports, std::vector<uint16_t>{29500});
  EXPECT_EQ(found->secret, "s");
  EXPECT_FALSE(found->serve);
  EXPECT_TRUE(found->served_by_rank);
  EXPECT_EQ(found->text(), "node-1:29500");
}

TEST(Rendezvous, NothingSetIsAWorldOfOne) {
  const Environment environment({});
  auto found = environment.find();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->kind, Rendezvous::Kind::alone);
  auto one_of_one = environment.find(0, 1, "memory:x");
  ASSERT_TRUE(one_of_one.ok());
  EXPECT_EQ(one_of_one->kind, Rendezvous::Kind::alone);
}

TEST(Rendezvous, Rank0ServesUnlessTheLauncherDoes) {
  const Environment own({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "4000"}});
  EXPECT_TRUE(own.find()->serve);
  EXPECT_EQ(own.find()->text(), "[::1]:4000");
  const Environment launched({{"RANK", "0"},
                              {"WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "127.0.0.1"},
                              {"MASTER_PORT", "4000"},
                              {"TUTTI_STORE_SERVED", "1"}});
  EXPECT_FALSE(launched.find()->serve);
  EXPECT_FALSE(launched.find()->served_by_rank);
  // That word is about the launcher's address; a program that names another place serves there itself.
  EXPECT_TRUE(launched.find(0, 2, "memory:own")->serve);
}

TEST(Rendezvous, TorchrunKeepsItsPortForItself) {
  const Environment environment({{"RANK", "0"},
                                 {"WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", "29500"},
                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  auto found = environment.find();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->ports.size(), 16u);
  EXPECT_EQ(found->ports.front(), 29501);
  EXPECT_EQ(found->ports.back(), 29516);
  const Environment last({{"RANK", "0"},
                          {"WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", "65535"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_THAT(last.find().status().message(), HasSubstr("65535"));
}

TEST(Rendezvous, WhatTheCallerGivesGoesFirst) {
  const Environment environment(
      {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node-1"}, {"MASTER_PORT", "29500"}});
  auto found = environment.find(2, 3, "file:/tmp/somewhere");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->size, 3);
  EXPECT_EQ(found->kind, Rendezvous::Kind::file);
  EXPECT_EQ(found->name, "/tmp/somewhere");
  EXPECT_EQ(environment.find(-1, 0, "[fd00::1]:80")->host, "fd00::1");
}

TEST(Rendezvous, WhatIsMissingOrWrongIsNamed) {
  const Environment none({});
  const auto message = [](Result<Rendezvous> result) {
    EXPECT_EQ(result.status().code(), Code::invalid_argument);
    return result.status().message();
  };
  EXPECT_THAT(message(none.find(1, 0)), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(message(none.find(-1, 4)), HasSubstr("RANK is not set"));
  EXPECT_THAT(message(none.find(4, 4, "memory:x")), AllOf(HasSubstr("rank 4 in a world of 4"), HasSubstr("0 to 3")));
  EXPECT_THAT(message(none.find(0, INT32_MAX, "memory:x")), HasSubstr("2147483647 ranks"));
  EXPECT_THAT(message(none.find(-2, 4, "memory:x")), HasSubstr("rank -2"));
  EXPECT_THAT(message(none.find(0, -4, "memory:x")), HasSubstr("size -4"));
  EXPECT_THAT(message(none.find(0, 2)), AllOf(HasSubstr("MASTER_ADDR and MASTER_PORT"), HasSubstr("TUTTI_STORE_FILE")));
  EXPECT_THAT(message(none.find(-1, 0, "memory:x")), HasSubstr("neither RANK nor WORLD_SIZE"));
  for (const char* store : {"", "nonsense", "host:", "host:0", "host:65536", ":80", "fd00::1:80", "[fd00::1]", "a b:80",
                            "file:", "memory:", "[host]:80", "host:80x"}) {
    if (*store) {
      EXPECT_THAT(message(none.find(0, 2, store)), HasSubstr(std::string("store \"") + store + "\""));
    }
  }
  const Environment half({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node-1"}});
  EXPECT_THAT(message(half.find()), HasSubstr("MASTER_PORT is missing"));
  const Environment bad({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node-1:80"}, {"MASTER_PORT", "80"}});
  EXPECT_THAT(message(bad.find()), HasSubstr("MASTER_ADDR: \"node-1:80\""));
}

TEST(HostPort, FormsOfAHost) {
  for (const auto& [text, host] :
       std::vector<std::pair<std::string, std::string>>{{"fd00::1", "fd00::1"},
                                                        {"[fd00::1]", "fd00::1"},
                                                        {"::1", "::1"},
                                                        {"::ffff:10.0.0.1", "::ffff:10.0.0.1"},
                                                        {"name", "name"},
                                                        {"name.", "name."},
                                                        {"fe80::1%eth0", "fe80::1%eth0"},
                                                        {"10.0.0.1", "10.0.0.1"}}) {
    auto parsed = parse_host(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(*parsed, host);
  }
  for (const char* text : {"", "[]", "[", "a:1", "a b", "[a]", "a/b", "a\n"})
    EXPECT_FALSE(parse_host(text).ok()) << text;
}

class StoreFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/tutti_store_XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/store";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Rendezvous at(int rank, int size) const {
    Rendezvous rendezvous = memory_rendezvous(path_, rank, size);
    rendezvous.kind = Rendezvous::Kind::file;
    return rendezvous;
  }
  void write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }

  std::string folder_, path_;
};

TEST_F(StoreFileTest, RanksMeetByAFileThatIsGoneAfterwards) {
  auto results = join_all(3, [&](int rank) {
    if (rank == 0) sleep_us(100'000);
    return Session::join(options(at(rank, 3)), patience());
  });
  for (auto& result : results) EXPECT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(StoreFileTest, WhatIsNoStoreFileStays) {
  std::ofstream(path_) << "precious\n";
  const std::vector<Address> addresses{numeric_address("127.0.0.1", 29500)};
  const auto refused = write_store_file(path_, addresses, fresh_secret());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_THAT(refused.status().message(), HasSubstr("not a store file"));
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "precious");
  for (const char* device : {"/dev/null", "/dev/full", "/tmp"}) {
    EXPECT_THAT(write_store_file(device, addresses, fresh_secret()).status().message(), HasSubstr("no plain file"));
    EXPECT_TRUE(std::filesystem::exists(device));
    EXPECT_FALSE(std::filesystem::is_regular_file(device));
  }
  std::filesystem::remove(path_);
  std::ofstream{path_};
  EXPECT_TRUE(write_store_file(path_, addresses, fresh_secret()).ok()) << "an empty file, as mktemp makes it";
  EXPECT_TRUE(write_store_file(path_, addresses, fresh_secret()).ok()) << "its own";
}

TEST_F(StoreFileTest, OnlyItsUserMayReadIt) {
  std::thread host([&] { (void)Session::join(options(at(0, 2)), Deadline::after_us(kSecond)); });
  struct stat facts {};
  while (stat(path_.c_str(), &facts) != 0) sleep_us(1000);
  EXPECT_EQ(facts.st_mode & 07777u, 0600u);
  host.join();
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "what a failed join leaves";
}

TEST_F(StoreFileTest, TheFileOfAnEarlierRunIsOvercome) {
  const uint16_t dead_port = listen_on(0, Reach::loopback).listeners.port;
  const std::vector<std::string> leftovers = {
      store_file_text({numeric_address("127.0.0.1", dead_port)}, fresh_secret()), "", "tutti store 1\n",
      "tutti store 1\n" + std::string(1 << 20, 'x')};
  for (const std::string& text : leftovers) {
    write(text);
    auto results = join_all(3, [&](int rank) {
      if (rank == 0) sleep_us(200'000);
      return Session::join(options(at(rank, 3)), patience());
    });
    for (auto& result : results) EXPECT_TRUE(result.ok()) << result.status().message();
  }
}

TEST_F(StoreFileTest, AFileThatLeadsToAnotherJobsStoreIsOvercome) {
  auto listening = listen_on(0, Reach::loopback);
  ASSERT_TRUE(listening.ok());
  write(store_file_text({numeric_address("127.0.0.1", listening.listeners.port)}, fresh_secret()));
  auto other = StoreServer::start({2, {fresh_secret(), "file"}, {}}, std::move(listening.listeners));
  ASSERT_TRUE(other.ok());
  auto results = join_all(2, [&](int rank) {
    if (rank == 0) sleep_us(200'000);
    return Session::join(options(at(rank, 2)), patience());
  });
  for (auto& result : results) EXPECT_TRUE(result.ok()) << result.status().message();
}

TEST_F(StoreFileTest, AFileThatOthersMayTouchIsRefused) {
  const std::string text = store_file_text({numeric_address("127.0.0.1", 80)}, fresh_secret());
  write(text, 0644);
  EXPECT_EQ(read_store_file(path_).status.code(), Code::invalid_argument);
  EXPECT_THAT(read_store_file(path_).status.message(), AllOf(HasSubstr("mode 644"), HasSubstr("allowed 600")));
  auto joined = Session::join(options(at(1, 2)), patience());
  EXPECT_EQ(joined.status().code(), Code::invalid_argument);
}

TEST_F(StoreFileTest, AFileOfAnotherUserIsRefusedOnBothSides) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  write(store_file_text({numeric_address("127.0.0.1", 80)}, fresh_secret()));
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  for (int rank : {0, 1}) {
    auto joined = Session::join(options(at(rank, 2)), patience());
    EXPECT_EQ(joined.status().code(), Code::invalid_argument);
    EXPECT_THAT(joined.status().message(), HasSubstr("belongs to user 12345"));
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(StoreFileTest, LinksAndOtherThingsAreNotFollowed) {
  std::filesystem::create_symlink("/etc/passwd", path_);
  EXPECT_TRUE(read_store_file(path_).addresses.empty());
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(read_store_file(path_).status.message(), HasSubstr("no plain file"));
}

TEST_F(StoreFileTest, AFolderThatIsNotThereIsNamed) {
  path_ = folder_ + "/missing/store";
  auto joined = Session::join(options(at(0, 2)), patience());
  EXPECT_EQ(joined.status().code(), Code::invalid_argument);
  EXPECT_THAT(joined.status().message(), AllOf(HasSubstr(path_), HasSubstr("No such file")));
}

TEST(StoreFile, TextsThatAreNone) {
  const std::string secret(64, 'a'), good = "tutti store 1\n" + secret + "\n127.0.0.1:80\n[::1]:80\nend\n";
  EXPECT_EQ(parse_store_file(good).addresses.size(), 2u);
  EXPECT_EQ(parse_store_file(good).secret, secret);
  EXPECT_EQ(store_file_text(parse_store_file(good).addresses, secret), good);
  for (size_t i = 0; i < good.size(); ++i) EXPECT_TRUE(parse_store_file(good.substr(0, i)).addresses.empty()) << i;
  const std::string title = "tutti store 1\n";
  const std::vector<std::string> bad = {good + "more", "tutti store 2\n" + secret + "\n127.0.0.1:80\nend\n",
                                        title + "short\n127.0.0.1:80\nend\n", title + secret + "\nname:80\nend\n",
                                        title + secret + "\nend\n"};
  for (const std::string& text : bad) EXPECT_TRUE(parse_store_file(text).addresses.empty()) << text;
}

}  // namespace
}  // namespace tutti::internal
