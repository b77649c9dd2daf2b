// TUTTI_IB_DEVICES: which ports of which devices may be used.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti::internal::verbs {

class DeviceFilter {
 public:
  // "mlx5_0,mlx5_1:1" these; "^mlx5_2,mlx5_3:2" all but these; "" all. Errors: invalid_argument.
  static Result<DeviceFilter> parse(std::string_view text);

  bool allows(std::string_view device, int port) const;
  bool allows_some(std::string_view device) const;  // of its ports
  // Each entry means a device that is there. Errors: invalid_argument, with those that are.
  Status check_names(std::span<const std::string> devices) const;
  // The same for the ports of one device.
  Status check_ports(std::string_view device, int port_count) const;

 private:
  struct Entry {
    std::string device;
    int port = 0;  // 0: all
  };
  std::vector<Entry> entries_;
  bool excludes_ = false;
};

// `devices`, those in `preferred` first and in its order.
std::vector<std::string> in_order(std::span<const std::string> devices, std::span<const std::string> preferred);

}  // namespace tutti::internal::verbs
