// What the parts of the verifier say when a schedule is wrong.
#pragma once

#include <fmt/format.h>

#include <string>

#include "algo/schedule.h"
#include "src/base/status.h"

namespace tutti::internal::proof {

// "rank 3 step 5 recv from 2 -> output[0,64): <what>".
inline Status fault(int rank, const Schedule& schedule, size_t step, const std::string& what) {
  return {Code::internal, fmt::format("rank {} step {}: {}", rank, to_text(schedule, static_cast<StepId>(step)), what)};
}

}  // namespace tutti::internal::proof
