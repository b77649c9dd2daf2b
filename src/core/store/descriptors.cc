#include "src/core/store/descriptors.h"

#include <fmt/core.h>

#include <algorithm>

#include "src/base/descriptors.h"
#include "src/core/store/store_server.h"

namespace tutti::internal {
namespace {

constexpr uint64_t kSpare = 16;  // the listeners, the transports' sockets, a file or two

}  // namespace

Status reserve_descriptors(int ranks) {
  const auto connections = static_cast<uint64_t>(std::max(ranks, 0));
  const uint64_t least = open_descriptors() + connections + kSpare;
  // Ranks that are threads of one process have three more each at their own ends.
  if (raise_descriptor_limit(least + 3 * connections + kMaxStrangers) >= least) return {};
  return Status(Code::out_of_resources, fmt::format("the store of a world of {} ranks needs {} descriptors; {}", ranks,
                                                    least, descriptor_advice(least)));
}

}  // namespace tutti::internal
