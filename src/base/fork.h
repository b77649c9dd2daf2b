// What fork's child must not do with its parent's things. It may not use the handles (they carry the epoch in which
// they were made), and it may not keep the connections open by which peers notice the parent's death.
#pragma once

#include <cstdint>

namespace tutti::internal {

// 0 in the process that loaded the library, one more in each generation of children.
uint32_t process_epoch();

// `fd` is closed in children that fork from now on. Say `release_from_fork` before closing it. Any thread.
void close_in_child(int fd);
void release_from_fork(int fd);

}  // namespace tutti::internal
