// Each TUTTI_IB_* reaches the field of the verbs transport that it names.
#include "src/core/ib_settings.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace tutti::internal {
namespace {

verbs::Settings settings_of(const std::vector<std::string>& settings) {
  const Result<Config> config = Config::load(settings);
  if (!config) throw std::runtime_error(config.status().message());
  return ib_settings(config.value());
}

TEST(IbSettings, EachGoesToItsOwnField) {
  const verbs::Settings settings = settings_of(
      {"TUTTI_IB_DEVICES=^mlx5_2", "TUTTI_IB_GID_INDEX=3", "TUTTI_IB_TRAFFIC_CLASS=106", "TUTTI_IB_SERVICE_LEVEL=5",
       "TUTTI_IB_TIMEOUT=14", "TUTTI_IB_RETRY_COUNT=6", "TUTTI_IB_RNR_RETRY=4", "TUTTI_IB_CONNECT=rdmacm"});
  EXPECT_EQ(settings.devices, "^mlx5_2");
  EXPECT_EQ(settings.gid_index, 3);
  EXPECT_EQ(settings.traffic_class, 106);
  EXPECT_EQ(settings.service_level, 5);
  EXPECT_EQ(settings.timeout, 14);
  EXPECT_EQ(settings.retry_count, 6);
  EXPECT_EQ(settings.rnr_retry, 4);
  EXPECT_TRUE(settings.through_rdmacm);
}

TEST(IbSettings, TheStoreIsNotRdmacm) { EXPECT_FALSE(settings_of({"TUTTI_IB_CONNECT=store"}).through_rdmacm); }

}  // namespace
}  // namespace tutti::internal
