// Registers memory with all ports, for the registrar. Any thread.
#pragma once

#include <memory>
#include <span>

#include "transport/verbs/port.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {

class PortsDomain final : public MemoryDomain {
 public:
  explicit PortsDomain(std::span<const std::unique_ptr<Port>> ports) : ports_(ports) {}

  Result<Handle> add(void* memory, size_t bytes, bool writable) override;
  void remove(const Handle& handle) override;

 private:
  const std::span<const std::unique_ptr<Port>> ports_;
};

}  // namespace tutti::internal::verbs
