// A path as the device wants it described.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

#include "transport/verbs/address.h"
#include "transport/verbs/port.h"
#include "transport/verbs/settings.h"

namespace tutti::internal::verbs {

// Of an MTU as enum ibv_mtu has it.
constexpr size_t mtu_bytes(uint8_t mtu) { return size_t{128} << mtu; }

// The way along `path`, which begins at `port`, with the settings' class and level.
ibv_ah_attr way_along(const Path& path, const Port& port, const Settings& settings);

}  // namespace tutti::internal::verbs
