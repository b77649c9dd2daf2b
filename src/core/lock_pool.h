// Where context locks come from and return to; none is ever freed (see context_lock.h).
#pragma once

#include "src/core/context_lock.h"

namespace tutti::internal {

ContextLock& take_lock();
void return_lock(ContextLock& lock);

}  // namespace tutti::internal
