#include "transport/shm/copy.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "transport/shm/tuning.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tutti::internal::shm {
namespace {

// Stores past the cache: whole lines that are not read before, and that push nothing out.
void copy_streaming(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__SSE2__)
  constexpr size_t kVector = sizeof(__m128i);
  constexpr size_t kLineVectors = 4;
  const size_t head = std::min(bytes, (64 - reinterpret_cast<uintptr_t>(to) % 64) % 64);
  std::memcpy(to, from, head);
  size_t done = head;
  for (; bytes - done >= kLineVectors * kVector; done += kLineVectors * kVector) {
    for (size_t i = 0; i < kLineVectors; ++i) {
      const auto* source = reinterpret_cast<const __m128i*>(from + done + i * kVector);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done + i * kVector), _mm_loadu_si128(source));
    }
  }
  _mm_sfence();  // these stores are not ordered with the release stores that follow
  std::memcpy(to + done, from + done, bytes - done);
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace

void copy_bytes(void* to, const void* from, size_t bytes, size_t message_bytes) {
  if (message_bytes >= kStreamingStoreBytes)
    copy_streaming(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  else
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
