// A file that hwloc wrote, read once and looked at before hwloc gets its text: what was looked at is what is loaded.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/status.h"

namespace tutti::internal {

// The largest machines take a few of them.
inline constexpr size_t kMostTopologyBytes = size_t{64} << 20;

// The file's text. Errors: invalid_argument, with the file, what it is and what it must be: no such file, a pipe or a
// device, too large, none of hwloc's, cut short, or of a version that this hwloc cannot read.
Result<std::string> read_topology_file(const std::string& path);

}  // namespace tutti::internal
