// The algorithms of each operation: one table in each collective's file.
#pragma once

#include <span>

#include "algo/registry.h"

namespace tutti::internal {

std::span<const Algorithm> barrier_algorithms();
std::span<const Algorithm> broadcast_algorithms();
std::span<const Algorithm> reduce_algorithms();
std::span<const Algorithm> all_reduce_algorithms();
std::span<const Algorithm> reduce_scatter_algorithms();
std::span<const Algorithm> scatter_algorithms();
std::span<const Algorithm> gather_algorithms();
std::span<const Algorithm> all_gather_algorithms();
std::span<const Algorithm> all_to_all_algorithms();
std::span<const Algorithm> send_recv_algorithms();

}  // namespace tutti::internal
