// A file that is written whole or not at all.
#pragma once

#include <string>

#include "src/base/status.h"

namespace tutti::internal {

// What was there before stays until all is written. What is no regular file (a pipe, /dev/stdout) is written into.
// Errors: invalid_argument, with the path and the reason.
Status write_whole_file(const std::string& path, const std::string& content);

}  // namespace tutti::internal
