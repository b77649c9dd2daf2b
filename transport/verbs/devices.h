// The RDMA devices that libibverbs finds, and what stands between us and one that cannot be used. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/fork.h"
#include "src/base/status.h"

namespace tutti::internal::verbs {

// A child made by fork shares the kernel's half of a context: it must neither destroy what its parent uses nor hold it
// open after the parent's end.
struct CloseContext {
  uint32_t epoch = process_epoch();
  void operator()(ibv_context* context) const;
};
using ContextPtr = std::unique_ptr<ibv_context, CloseContext>;

struct DeviceNames {
  std::vector<std::string> usable;   // that libibverbs has, in its order
  std::vector<std::string> unknown;  // that only the kernel has
};
// Errors: unsupported (there are none, and why).
Result<DeviceNames> find_devices();

// Its asynchronous events are read without blocking. Errors: unsupported.
Result<ContextPtr> open_device(const std::string& device);

// Why libibverbs does not have a device that the kernel has.
std::string why_unknown(const std::string& device);

}  // namespace tutti::internal::verbs
