// Handles to asynchronous operations.
#pragma once

#include "src/core/api_entry.h"

namespace tutti::internal {

// Starts the call and hands its work out.
Status start_async(Group& group, const Call& call, tutti_work** handle);

// Takes the handles of a group's works out of use, before the group goes.
void drop_works(Group& group, Locked& lock);

}  // namespace tutti::internal
