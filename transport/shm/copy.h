// Moving bytes: small ones without a call, large ones past the cache, and a peer's ordinary memory through the kernel.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tutti::internal::shm {

// At most 48 bytes, by two overlapping moves: memcpy's call costs as much as the rest of a small message.
inline void copy_small(void* to, const void* from, size_t bytes) {
  auto* const t = static_cast<std::byte*>(to);
  const auto* const f = static_cast<const std::byte*>(from);
  if (bytes >= 16) {
    std::memcpy(t, f, 16);
    if (bytes > 32) std::memcpy(t + 16, f + 16, 16);
    std::memcpy(t + bytes - 16, f + bytes - 16, 16);
  } else if (bytes >= 8) {
    std::memcpy(t, f, 8);
    std::memcpy(t + bytes - 8, f + bytes - 8, 8);
  } else if (bytes >= 4) {
    std::memcpy(t, f, 4);
    std::memcpy(t + bytes - 4, f + bytes - 4, 4);
  } else if (bytes > 0) {
    t[0] = f[0];
    t[bytes / 2] = f[bytes / 2];
    t[bytes - 1] = f[bytes - 1];
  }
}

// memcpy; a part of a message of `message_bytes` that does not stay in the cache anyway is stored past it.
void copy_bytes(void* to, const void* from, size_t bytes, size_t message_bytes);

// Reads another process's memory; 0, or the errno of process_vm_readv. All bytes or an error.
int read_process(pid_t pid, uint64_t address, void* to, size_t bytes);

}  // namespace tutti::internal::shm
