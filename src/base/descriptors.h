// A process's open descriptors and the limit on them, RLIMIT_NOFILE.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::internal {

uint64_t open_descriptors();

// As in "RLIMIT_NOFILE is 1024, hard limit 4096".
std::string descriptor_limit();
// The same, and how to have `needed`.
std::string descriptor_advice(uint64_t needed);

// Raises the soft limit to `wanted` where it is lower, as far as the hard limit allows. What it is then.
uint64_t raise_descriptor_limit(uint64_t wanted);

}  // namespace tutti::internal
