#include "src/base/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

namespace tutti::internal {

void prefer_numa_node(void* memory, size_t bytes, int node) {
  if (node < 0) return;
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask(static_cast<size_t>(node) / kBits + 1);
  mask.back() = 1UL << static_cast<size_t>(node) % kBits;
  syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, mask.data(), mask.size() * kBits + 1, 0);
}

}  // namespace tutti::internal
