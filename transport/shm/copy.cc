#include "transport/shm/copy.h"

#include <sys/uio.h>

#include <cerrno>

namespace tutti::internal::shm {

void copy_bytes(void* to, const void* from, size_t bytes, size_t message_bytes) {
  (void)message_bytes;
  std::memcpy(to, from, bytes);
}

int read_process(pid_t pid, uint64_t address, void* to, size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const iovec local{out, bytes};
    const iovec remote{reinterpret_cast<void*>(address), bytes};
    const ssize_t moved = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno;
    if (moved == 0) return EFAULT;
    out += moved;
    address += static_cast<uint64_t>(moved);
    bytes -= static_cast<size_t>(moved);
  }
  return 0;
}

}  // namespace tutti::internal::shm
