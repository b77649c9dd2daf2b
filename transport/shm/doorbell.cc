#include "transport/shm/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <limits>

namespace tutti::internal::shm {

void Doorbell::wake() {
  // The word changes first: a sleeper on its way into the futex then does not fall asleep. Relaxed: the system call
  // orders it.
  std::atomic_ref(*word_).store(0, std::memory_order_relaxed);
  syscall(SYS_futex, word_, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

void Doorbell::wait(int64_t timeout_us) {
  const timespec timeout{.tv_sec = timeout_us / 1'000'000, .tv_nsec = timeout_us % 1'000'000 * 1000};
  // Returns at once when the word is no longer 1; a signal or the timeout end it too. The caller polls again anyway.
  syscall(SYS_futex, word_, FUTEX_WAIT, 1, &timeout, nullptr, 0);
}

}  // namespace tutti::internal::shm
