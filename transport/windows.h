// Windows of this rank: memory that is zeroed, on its NUMA node where there is a choice, touched once, and registered
// until it is released. Owner's thread.
#pragma once

#include <cstddef>
#include <map>

#include "src/base/status.h"

namespace tutti::internal {

// What makes memory known to devices, as long as it is used for messages.
class Registry {
 public:
  virtual ~Registry() = default;
  // Writable memory, which stays mapped until `remove`. Errors: out_of_resources, invalid_argument.
  virtual Status add(void* memory, size_t bytes) = 0;
  // invalid_argument: not what `add` got.
  virtual Status remove(void* memory) = 0;
};

class Windows {
 public:
  Windows(Registry& registry, int numa_node) : registry_(registry), numa_node_(numa_node) {}
  ~Windows();

  // Errors: out_of_resources.
  Result<void*> allocate(size_t bytes);
  // Errors: invalid_argument.
  Status release(void* memory);

 private:
  Registry& registry_;
  const int numa_node_;
  std::map<void*, size_t> lengths_;
};

}  // namespace tutti::internal
