// Variables of the environment that are not tutti's settings, but those of libraries that it uses.
#pragma once

#include <cstdlib>
#include <string>

namespace tutti::internal {

// "" where it is not set.
inline std::string foreign_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace tutti::internal
