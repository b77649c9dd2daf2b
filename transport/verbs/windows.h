// Windows of this rank: memory that is zeroed, on its NUMA node where there is a choice, touched once, and registered
// with every port until it is released. Owner's thread.
#pragma once

#include <cstddef>
#include <map>

#include "src/base/status.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {

class Windows {
 public:
  Windows(Registrar& registrar, int numa_node) : registrar_(registrar), numa_node_(numa_node) {}
  ~Windows();

  // Errors: out_of_resources.
  Result<void*> allocate(size_t bytes);
  // Errors: invalid_argument.
  Status release(void* memory);

 private:
  Registrar& registrar_;
  const int numa_node_;
  std::map<void*, size_t> lengths_;
};

}  // namespace tutti::internal::verbs
