// The configuration's table: where values come from, what is refused and with which words.
#include "src/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>

#include "environment.h"

namespace tutti::internal {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class ConfigTest : public ::testing::Test {
 protected:
  // Whatever started the tests, they see none of the names that count.
  void SetUp() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID",
                             "SLURM_NTASKS", "SLURM_LOCALID", "TORCHELASTIC_USE_AGENT_STORE"})
      environment.unset(name);
    for (const Config::Row& row : load().rows())
      if (row.name.starts_with("TUTTI_")) environment.unset(row.name);
  }

  static Config load(const std::vector<std::string>& settings = {}) {
    Result<Config> config = Config::load(settings);
    if (!config) throw std::runtime_error(config.status().message());
    return std::move(*config);
  }
  static std::string refusal(const std::vector<std::string>& settings = {}) {
    const Result<Config> config = Config::load(settings);
    if (config.ok()) return "accepted";
    EXPECT_EQ(config.status().code(), Code::invalid_argument);
    return config.status().message();
  }
  static Config::Row row(const Config& config, std::string_view name) {
    const auto rows = config.rows();
    return *std::ranges::find(rows, name, &Config::Row::name);
  }

  tutti_test::Environment environment;
};

TEST_F(ConfigTest, ReadsSettingsThenTheEnvironmentThenDefaults) {
  environment.set("RANK", "3");
  environment.set("TUTTI_TIMEOUT", "20");
  environment.set("TUTTI_JOIN_TIMEOUT", "7");
  const Config config = load({"TUTTI_TIMEOUT=2.5"});
  EXPECT_EQ(config.rank(), 3);
  EXPECT_EQ(config.timeout_us(), 2'500'000);
  EXPECT_EQ(config.join_timeout_us(), 7'000'000);
  EXPECT_EQ(config.warn_after_us(), 60'000'000);
  EXPECT_EQ(row(config, "TUTTI_TIMEOUT").source, "setting");
  EXPECT_EQ(row(config, "TUTTI_JOIN_TIMEOUT").source, "environment");
  EXPECT_EQ(row(config, "TUTTI_WARN_AFTER").source, "default");
}

TEST_F(ConfigTest, WithNothingSetHasTheDocumentedDefaults) {
  const Config config = load();
  EXPECT_EQ(config.rank(), std::nullopt);
  EXPECT_EQ(config.size(), std::nullopt);
  EXPECT_EQ(config.local_rank(), std::nullopt);
  EXPECT_EQ(config.master_addr(), "");
  EXPECT_EQ(config.master_port(), std::nullopt);
  EXPECT_EQ(config.store_file(), "");
  EXPECT_FALSE(config.store_served());
  EXPECT_FALSE(config.torchrun_owns_port());
  EXPECT_EQ(config.secret(), "");
  EXPECT_EQ(config.timeout_us(), 1'800'000'000);
  EXPECT_EQ(config.join_timeout_us(), 300'000'000);
  EXPECT_FALSE(config.check());
  EXPECT_EQ(config.algorithm(), "");
  EXPECT_EQ(config.log_level(), "warn");
  EXPECT_EQ(config.transports(), "shm,verbs,ucx");
  EXPECT_EQ(config.ib_devices(), "");
  EXPECT_EQ(config.ib_gid_index(), -1);
  EXPECT_EQ(config.ib_traffic_class(), 0);
  EXPECT_EQ(config.ib_service_level(), 0);
  EXPECT_EQ(config.ib_timeout(), 18);
  EXPECT_EQ(config.ib_retry_count(), 7);
  EXPECT_EQ(config.ib_rnr_retry(), 7);
  EXPECT_EQ(config.ib_connect(), "store");
  EXPECT_THAT(config.warnings(), IsEmpty());
}

TEST_F(ConfigTest, TheLastOfTwoSettingsCounts) {
  EXPECT_EQ(load({"TUTTI_TIMEOUT=1", "TUTTI_TIMEOUT=2"}).timeout_us(), 2'000'000);
}

TEST_F(ConfigTest, TakesTorchrunsAndSlurmsNames) {
  environment.set("SLURM_PROCID", "5");
  environment.set("SLURM_NTASKS", "8");
  environment.set("SLURM_LOCALID", "1");
  environment.set("TORCHELASTIC_USE_AGENT_STORE", "True");
  Config config = load();
  EXPECT_EQ(config.rank(), 5);
  EXPECT_EQ(config.size(), 8);
  EXPECT_EQ(config.local_rank(), 1);
  EXPECT_TRUE(config.torchrun_owns_port());
  EXPECT_EQ(row(config, "RANK").source, "environment SLURM_PROCID");
  environment.set("RANK", "2");
  config = load();
  EXPECT_EQ(config.rank(), 2) << "RANK goes before Slurm's name";
  EXPECT_EQ(row(config, "RANK").source, "environment");
}

TEST_F(ConfigTest, RefusesWorldSizesThatAreNone) {
  for (const char* value : {"0", "-1", "", "4x", " 4", "4 ", "0x4", "+4", "4294967298", "2147483648", "1e3", "four"}) {
    environment.set("WORLD_SIZE", value);
    EXPECT_EQ(refusal(), "WORLD_SIZE (environment) is '" + std::string(value) +
                             "': it must be a whole number from 1 to 2147483647");
  }
  environment.set("WORLD_SIZE", "2147483647");
  EXPECT_EQ(load().size(), 2147483647);
}

TEST_F(ConfigTest, RefusesBadValuesOfEachTypeByNameAndWithWhatIsAllowed) {
  EXPECT_EQ(refusal({"RANK=-1"}), "RANK (setting) is '-1': it must be a whole number from 0 to 2147483646");
  EXPECT_EQ(refusal({"MASTER_PORT=0"}), "MASTER_PORT (setting) is '0': it must be a whole number from 1 to 65535");
  EXPECT_EQ(refusal({"MASTER_PORT=65536"}),
            "MASTER_PORT (setting) is '65536': it must be a whole number from 1 to 65535");
  EXPECT_EQ(refusal({"TUTTI_CHECK=maybe"}),
            "TUTTI_CHECK (setting) is 'maybe': it must be 1 or 0, true or false, yes or no");
  EXPECT_EQ(refusal({"TUTTI_LOG=loud"}), "TUTTI_LOG (setting) is 'loud': it must be debug, info, warn, error or off");
  EXPECT_EQ(refusal({"TUTTI_TIMEOUT=soon"}),
            "TUTTI_TIMEOUT (setting) is 'soon': it must be a number of seconds above 0, as in 1.5, or none");
  for (const std::string name : {"TUTTI_TIMEOUT", "TUTTI_JOIN_TIMEOUT"})
    EXPECT_EQ(refusal({name + "=0"}),
              name + " (setting) is '0': it must be a number of seconds above 0, as in 1.5, or none");
  EXPECT_EQ(refusal({"TUTTI_WARN_AFTER=late"}),
            "TUTTI_WARN_AFTER (setting) is 'late': it must be a number of seconds from 0 on, as in 1.5, or none");
  EXPECT_EQ(load({"TUTTI_WARN_AFTER=0"}).warn_after_us(), 0);
  environment.set("SLURM_NTASKS", "0");
  EXPECT_THAT(refusal(), HasSubstr("WORLD_SIZE (environment SLURM_NTASKS) is '0'"));
}

TEST_F(ConfigTest, RdmaSettingsHaveTheRangesOfTheirFields) {
  struct Range {
    const char* name;
    int least, most;
    int (Config::*get)() const;
  };
  for (const auto& [name, least, most, get] : {Range{"TUTTI_IB_GID_INDEX", -1, 255, &Config::ib_gid_index},
                                               Range{"TUTTI_IB_TRAFFIC_CLASS", 0, 255, &Config::ib_traffic_class},
                                               Range{"TUTTI_IB_SERVICE_LEVEL", 0, 15, &Config::ib_service_level},
                                               Range{"TUTTI_IB_TIMEOUT", 1, 31, &Config::ib_timeout},
                                               Range{"TUTTI_IB_RETRY_COUNT", 0, 7, &Config::ib_retry_count},
                                               Range{"TUTTI_IB_RNR_RETRY", 0, 7, &Config::ib_rnr_retry}}) {
    const std::string allowed = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    for (const int good : {least, most})
      EXPECT_EQ((load({std::string(name) + "=" + std::to_string(good)}).*get)(), good);
    for (const std::string& bad :
         {std::to_string(least - 1), std::to_string(most + 1), std::string("x"), std::string()})
      EXPECT_EQ(refusal({std::string(name) + "=" + bad}),
                std::string(name) + " (setting) is '" + bad + "': it must be " + allowed);
  }
}

TEST_F(ConfigTest, PortsAreARangeOrOne) {
  EXPECT_TRUE(load().ports().empty());
  EXPECT_EQ(load({"TUTTI_PORT_RANGE=20000-20002"}).ports(), (std::vector<uint16_t>{20000, 20001, 20002}));
  EXPECT_EQ(load({"TUTTI_PORT_RANGE=65535"}).ports(), std::vector<uint16_t>{65535});
  for (const std::string bad : {"0-5", "5-4", "1-65536", "1-", "-5", "a-b", "1-2-3", "1,2"})
    EXPECT_EQ(refusal({"TUTTI_PORT_RANGE=" + bad}),
              "TUTTI_PORT_RANGE (setting) is '" + bad +
                  "': it must be two ports from 1 to 65535, the smaller first, as in 20000-20010");
}

TEST_F(ConfigTest, WordsAreTakenInAnyCaseAndNoOthers) {
  EXPECT_EQ(load({"TUTTI_IB_CONNECT=RDMAcm"}).ib_connect(), "rdmacm");
  EXPECT_EQ(refusal({"TUTTI_IB_CONNECT=mpi"}), "TUTTI_IB_CONNECT (setting) is 'mpi': it must be store or rdmacm");
  environment.set("TUTTI_IB_CONNECT", "mpi");
  EXPECT_THAT(refusal(), HasSubstr("TUTTI_IB_CONNECT (environment) is 'mpi'"));
}

TEST_F(ConfigTest, ListsHoldTheirWordsAndNoOthers) {
  const Config config = load({"TUTTI_TRANSPORT=UCX,shm"});
  EXPECT_TRUE(config.allows_transport("shm"));
  EXPECT_TRUE(config.allows_transport("ucx"));
  EXPECT_FALSE(config.allows_transport("verbs"));
  for (const std::string bad : {"tcp", "shm,", ",", "shm,tcp", "shm ucx", ""})
    EXPECT_EQ(refusal({"TUTTI_TRANSPORT=" + bad}),
              "TUTTI_TRANSPORT (setting) is '" + bad + "': it must be some of shm, verbs or ucx, with commas");
}

TEST_F(ConfigTest, AnEmptyVariableIsNone) {
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "TUTTI_TIMEOUT", "TUTTI_CHECK", "TUTTI_LOG", "TUTTI_SECRET"})
    environment.set(name, "");
  const Config config = load();
  EXPECT_EQ(config.master_port(), std::nullopt);
  EXPECT_EQ(config.timeout_us(), 1'800'000'000);
  EXPECT_EQ(config.log_level(), "warn");
  EXPECT_EQ(row(config, "TUTTI_SECRET").value, "");
}

TEST_F(ConfigTest, ReadsSecondsAsMicroseconds) {
  EXPECT_EQ(parse_seconds("1.5"), 1'500'000);
  EXPECT_EQ(parse_seconds("0"), 0);
  EXPECT_EQ(parse_seconds(".000001"), 1);
  EXPECT_EQ(parse_seconds("none"), kNever);
  EXPECT_LT(*parse_seconds("9223372036854"), kNever);
  EXPECT_EQ(parse_seconds("9223372036855"), kNever) << "saturates";
  EXPECT_EQ(parse_seconds("1" + std::string(400, '0')), kNever);
  EXPECT_EQ(parse_seconds("0." + std::string(400, '0') + "1"), 0) << "too small for a double is not too large";
  for (const char* text : {"", "-1", "-0", "+1", "nan", "1s", "1,5", " 1", "1 ", "0x1", "1e3", "None?"})
    EXPECT_EQ(parse_seconds(text), std::nullopt) << text;
}

TEST_F(ConfigTest, ReadsLevelsAndFlagsInAnyCase) {
  EXPECT_EQ(load({"TUTTI_LOG=DEBUG"}).log_level(), "debug");
  for (const char* yes : {"1", "true", "True", "YES", "on"})
    EXPECT_TRUE(load({std::string("TUTTI_CHECK=") + yes}).check()) << yes;
  for (const char* no : {"0", "false", "No", "OFF"})
    EXPECT_FALSE(load({std::string("TUTTI_CHECK=") + no}).check()) << no;
}

TEST_F(ConfigTest, WarnsOfUnknownNamesWithTheNearest) {
  environment.set("TUTTI_TIMEOUTS", "3");
  environment.set("TUTTI_ALGORITM", "ring");
  environment.set("TUTTIFRUTTI", "1");
  EXPECT_THAT(load().warnings(), testing::UnorderedElementsAre(
                                     "TUTTI_TIMEOUTS means nothing to tutti; the nearest name is TUTTI_TIMEOUT",
                                     "TUTTI_ALGORITM means nothing to tutti; the nearest name is TUTTI_ALGORITHM"));
}

TEST_F(ConfigTest, NamesNoneThatIsFarAway) {
  environment.set("TUTTI_XYZZY", "1");
  EXPECT_THAT(load().warnings(), testing::ElementsAre("TUTTI_XYZZY means nothing to tutti"));
}

TEST_F(ConfigTest, RefusesSettingsThatMeanNothing) {
  EXPECT_EQ(refusal({"TUTTI_CHEK=1"}), "setting: TUTTI_CHEK means nothing to tutti; the nearest name is TUTTI_CHECK");
  EXPECT_EQ(refusal({"TUTTI_CHECK"}), "setting 'TUTTI_CHECK' has no value: it must be TUTTI_CHECK=value");
  EXPECT_THAT(refusal({""}), HasSubstr("means nothing"));
}

TEST_F(ConfigTest, NeverShowsTheSecret) {
  const Config config = load({"TUTTI_SECRET=hunter2"});
  EXPECT_EQ(config.secret(), "hunter2");
  EXPECT_EQ(row(config, "TUTTI_SECRET").value, "set");
  EXPECT_THAT(refusal({"TUTTI_SECRT=hunter2"}), Not(HasSubstr("hunter2")));
  EXPECT_THAT(refusal({"hunter2"}), AllOf(HasSubstr("hunter2"), HasSubstr("means nothing")))
      << "a name is shown: it is no value";
}

TEST_F(ConfigTest, EachRowSaysWhatItIsFor) {
  const auto rows = load().rows();
  ASSERT_GE(rows.size(), 15u);
  for (const Config::Row& entry : rows) {
    EXPECT_THAT(entry.type, testing::AnyOf("integer", "seconds", "bool", "text", "level")) << entry.name;
    EXPECT_FALSE(entry.help.empty()) << entry.name;
    EXPECT_EQ(entry.help.find('\n'), std::string::npos) << entry.name;
    EXPECT_EQ(std::ranges::count(rows, entry.name, &Config::Row::name), 1) << entry.name;
  }
}

TEST_F(ConfigTest, TheReadmeHasEachRow) {
  std::ifstream file(TUTTI_README);
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  for (const Config::Row& entry : load().rows()) EXPECT_THAT(readme, HasSubstr("`" + entry.name + "`"));
}

}  // namespace
}  // namespace tutti::internal
