// The RDMA settings of the configuration, as the verbs transport takes them.
#pragma once

#include "src/base/config.h"
#include "transport/verbs/settings.h"

namespace tutti::internal {

verbs::Settings ib_settings(const Config& config);

}  // namespace tutti::internal
