// How much memory may still be taken before the kernel starts to kill: of the machine and of this process's cgroup.
#pragma once

#include <cstddef>

namespace tutti::internal::shm {

// Bytes; the largest value where nothing can be read. An estimate: others take memory too. Any thread.
size_t available_memory();

}  // namespace tutti::internal::shm
