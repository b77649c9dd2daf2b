// What the user asks of RDMA devices and their connections (TUTTI_IB_*), checked by src/base/config.
#pragma once

#include <string>

namespace tutti::internal::verbs {

struct Settings {
  std::string devices = {};  // exact names, "mlx5_0,mlx5_1:1" (device:port), "^mlx5_2" all but these; "" all
  int gid_index = -1;        // -1: chosen
  int traffic_class = 0;     // of RoCE packets, 0 to 255
  int service_level = 0;     // 0 to 15
  int timeout = 18;          // a lost packet is sent again after 4.096 us * 2^timeout; 1 to 31
  int retry_count = 7;       // how often; 0 to 7
  int rnr_retry = 7;         // the same where the receiver has no buffer; 7 means for ever
  bool through_rdmacm = false;
};

}  // namespace tutti::internal::verbs
