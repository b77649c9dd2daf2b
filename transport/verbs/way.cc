#include "transport/verbs/way.h"

#include <cstring>

namespace tutti::internal::verbs {
namespace {

constexpr uint8_t kHopLimit = 64;

}  // namespace

ibv_ah_attr way_along(const Path& path, const Port& port, const Settings& settings) {
  ibv_ah_attr way{};
  way.port_num = static_cast<uint8_t>(port.number());
  way.sl = static_cast<uint8_t>(settings.service_level);
  way.dlid = path.peer_lid;
  if (!path.is_global) return way;
  way.is_global = 1;
  std::memcpy(way.grh.dgid.raw, path.peer_gid_raw.data(), path.peer_gid_raw.size());
  way.grh.sgid_index = static_cast<uint8_t>(path.own_gid);
  way.grh.hop_limit = kHopLimit;
  way.grh.traffic_class = static_cast<uint8_t>(settings.traffic_class);
  return way;
}

}  // namespace tutti::internal::verbs
