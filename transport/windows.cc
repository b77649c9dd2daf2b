#include "transport/windows.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/numa.h"

namespace tutti::internal {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t rounded(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

Windows::~Windows() {
  while (!lengths_.empty()) (void)release(lengths_.begin()->first);
}

Result<void*> Windows::allocate(size_t bytes) {
  const size_t length = rounded(bytes);
  const auto failed = [&](const char* call) {
    return Status::system(Code::out_of_resources, fmt::format("{} of a window of {} bytes", call, bytes), errno);
  };
  if (length < bytes) return Status(Code::out_of_resources, fmt::format("a window of {} bytes", bytes));
  void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed("mmap");
  if (length >= kHugePageBytes) madvise(memory, length, MADV_HUGEPAGE);  // where the system has them
  prefer_numa_node(memory, length, numa_node_);
  if (madvise(memory, length, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {  // EINVAL: an older kernel
    const Status status = failed("populating");
    munmap(memory, length);
    return status;
  }
  if (Status added = registry_.add(memory, length); !added.ok()) {
    munmap(memory, length);
    return added;
  }
  lengths_.emplace(memory, length);
  return memory;
}

Status Windows::release(void* memory) {
  const auto found = lengths_.find(memory);
  if (found == lengths_.end()) return Status(Code::invalid_argument, "this is no window of this rank");
  TUTTI_RETURN_IF_ERROR(registry_.remove(memory));
  munmap(memory, found->second);
  lengths_.erase(found);
  return {};
}

}  // namespace tutti::internal
