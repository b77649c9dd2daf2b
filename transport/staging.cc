#include "transport/staging.h"

#include <sys/mman.h>

#include <cerrno>

namespace tutti::internal {

Status Staging::prepare() {
  if (is_ready()) return {};
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return Status::system(Code::out_of_resources, "mmap of staging memory", errno);
  if (Status added = registry_.add(memory, kBytes); !added.ok()) {
    munmap(memory, kBytes);
    return added;
  }
  memory_ = static_cast<std::byte*>(memory);
  for (int chunk = static_cast<int>(kChunkCount); chunk-- > 0;) free_.push_back(chunk);
  return {};
}

Staging::~Staging() {
  if (!is_ready()) return;
  (void)registry_.remove(memory_);
  munmap(memory_, kBytes);
}

int Staging::take() {
  if (free_.empty()) return -1;
  const int chunk = free_.back();
  free_.pop_back();
  return chunk;
}

}  // namespace tutti::internal
