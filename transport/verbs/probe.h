// Whether a port does what the transport needs of it, found by doing it. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

#include "src/base/status.h"

namespace tutti::internal::verbs {

// So much memory the transport registers at least: message buffers of a few peers, and chunks.
inline constexpr size_t kLeastLockedBytes = size_t{16} << 20;

// Makes a reliable queue pair with a shared receive queue and takes it to INIT; registers memory, where the limit of
// locked memory is small. Nothing of it stays. Errors: unsupported, out_of_resources (with the limit and the value
// needed, where that is it).
Status probe(ibv_context* context, ibv_pd* domain, int port);

}  // namespace tutti::internal::verbs
