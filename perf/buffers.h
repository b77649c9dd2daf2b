// The memory that a sweep uses, taken once for its largest size, from the library or from malloc.
#pragma once

#include <tutti/tutti.h>

#include <cstddef>

#include "options.h"

namespace tutti::perf {

class Region {
 public:
  // Throws std::runtime_error where there is no memory. 0 bytes gives null.
  Region(tutti_group* group, Memory memory, size_t bytes);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  tutti_group* group_;
  Memory memory_;
  void* data_ = nullptr;
};

// What the system says can still be had here without swapping; the largest number where it does not say.
double available_bytes();

// Decides for all ranks alike whether every rank's node has room for what its ranks need; 'own_bytes' is this rank's
// part. Returns what is missing, or "".
std::string missing_memory(tutti_group* group, double own_bytes);

}  // namespace tutti::perf
