// Knows whether this process is a fork's child of the one that made a handle: each fork starts a new epoch in the
// child.
#pragma once

#include <cstdint>

namespace tutti::internal {

// 0 in the process that loaded the library, one more in each generation of fork's children.
uint32_t process_epoch();

}  // namespace tutti::internal
