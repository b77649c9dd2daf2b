// New groups out of an old one. Each of these is a collective on the old group: one all_gather carries what every rank
// asked for, so that all ranks see the same and decide alike.
#pragma once

#include <span>

#include "src/core/context.h"

namespace tutti::internal {

// The new group, or null where this rank is in none.
Result<Group*> make_subgroup(Group& parent, std::span<const int> ranks, Locked& lock);
Result<Group*> make_split(Group& parent, int color, int key, Locked& lock);
Result<Group*> make_dup(Group& parent, Locked& lock);

// Starts the call, and waits for its end.
Status run(Group& group, const Call& call, Locked& lock);

}  // namespace tutti::internal
