// Grants of a peer's that came before their send. Owner's thread.
#pragma once

#include <cstdint>

#include "transport/list.h"
#include "transport/verbs/wire.h"

namespace tutti::internal::verbs {

struct EarlyGrant : Links<EarlyGrant> {
  uint64_t channel = 0;
  uint64_t match = 0;
  GrantBody body;
};

struct Inbox {
  List<EarlyGrant> grants;

  EarlyGrant* find_grant(uint64_t channel, uint64_t match) const {
    EarlyGrant* entry = grants.front();
    while (entry != nullptr && !(entry->match == match && entry->channel == channel)) entry = entry->next;
    return entry;
  }
};

}  // namespace tutti::internal::verbs
