// A way to connect queue pairs with those of another rank: by letters (letters.h), or by rdma_cm (cm.h).
#pragma once

#include <mutex>

#include "transport/verbs/connections.h"

namespace tutti::internal::verbs {

class Wiring {
 public:
  virtual ~Wiring() = default;
  // Begins to connect as planned, and leaves the rest to whoever serves: an attempt is under way afterwards. `lock`
  // holds the connections' mutex, and may be released meanwhile. Errors: unsupported, out_of_resources; then nothing
  // is.
  virtual Status ask(const Plan& plan, std::unique_lock<std::mutex>& lock) = 0;
};

}  // namespace tutti::internal::verbs
