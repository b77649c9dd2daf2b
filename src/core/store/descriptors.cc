#include "src/core/store/descriptors.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "src/core/store/store_server.h"

namespace tutti::internal {
namespace {

constexpr uint64_t kSpare = 16;  // the listeners, the transports' sockets, a file or two

uint64_t open_descriptors() {
  std::error_code error;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error))
    ++count;
  return count;
}

}  // namespace

Status reserve_descriptors(int ranks) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const uint64_t used = open_descriptors(), connections = static_cast<uint64_t>(std::max(ranks, 0));
  const uint64_t least = used + connections + kSpare;
  if (least > limit.rlim_max)
    return Status(Code::out_of_resources,
                  fmt::format("the store of a world of {} ranks needs {} descriptors, RLIMIT_NOFILE allows {} (hard "
                              "limit {}): raise it, as with ulimit -n {}",
                              ranks, least, limit.rlim_cur, limit.rlim_max, least));
  // Ranks that are threads of one process have three more each at their own ends.
  const uint64_t good = least + 3 * connections + kMaxStrangers;
  if (limit.rlim_cur >= good) return {};
  limit.rlim_cur = std::min<uint64_t>(good, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 && limit.rlim_cur < least)
    return Status::system(Code::out_of_resources, fmt::format("raising RLIMIT_NOFILE to {}", limit.rlim_cur), errno);
  return {};
}

}  // namespace tutti::internal
