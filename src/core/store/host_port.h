// "host:port" and "[v6]:port" as people write them. Pure text; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace tutti::internal {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;
};

// A host alone: "name", "name.", "10.0.0.1", "fd00::1", "[fd00::1]".
Result<std::string> parse_host(std::string_view text);
// A host and a port; an IPv6 address needs its brackets here.
Result<HostPort> parse_host_port(std::string_view text);

}  // namespace tutti::internal
