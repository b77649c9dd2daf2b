#include "src/core/ib_settings.h"

namespace tutti::internal {

verbs::Settings ib_settings(const Config& config) {
  return {.devices = config.ib_devices(),
          .gid_index = config.ib_gid_index(),
          .traffic_class = config.ib_traffic_class(),
          .service_level = config.ib_service_level(),
          .timeout = config.ib_timeout(),
          .retry_count = config.ib_retry_count(),
          .rnr_retry = config.ib_rnr_retry(),
          .through_rdmacm = config.ib_connect() == "rdmacm"};
}

}  // namespace tutti::internal
