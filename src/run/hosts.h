// On which hosts a job runs, and with how many ranks on each: --hosts and --hostfile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti::internal {

struct HostSlots {
  std::string host;  // as ssh takes it: a name or an address (IPv6 without brackets), perhaps with "user@" before it
  int slots = 1;

  bool operator==(const HostSlots&) const = default;
};

// "a:4,b,[fd00::1]:2". A host that is named again gets these ranks more. Errors: invalid_argument.
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);

// The same from a file: a line for each host, "a slots=4", "a:4" or "a"; what follows # is a comment. Errors:
// invalid_argument, with file and line.
Result<std::vector<HostSlots>> read_hostfile(const std::string& path);
Result<std::vector<HostSlots>> parse_hostfile(const std::string& path, std::string_view text);

// What each host gets of a job of `rank_count` ranks: the first hosts are filled first. At most all slots.
std::vector<HostSlots> deal(const std::vector<HostSlots>& hosts, int rank_count);
int count_slots(const std::vector<HostSlots>& hosts);

// Whether it is this machine: "localhost", the name that this machine has, or an address of its own.
bool is_this_host(const std::string& host);

}  // namespace tutti::internal
