// The node-first algorithm of each operation: its builder, and its price, which fills segment_bytes and composition.
// They stand in the registry beside the others of their operation.
#pragma once

#include "algo/registry.h"

namespace tutti::internal::node_first {

// Whether there are several nodes, one of which holds several ranks.
bool fits(const Problem& problem);

void build_barrier(Builder& builder);
void build_broadcast(Builder& builder);
void build_reduce(Builder& builder);
void build_all_reduce(Builder& builder);
void build_reduce_scatter(Builder& builder);
void build_scatter(Builder& builder);
void build_gather(Builder& builder);
void build_all_gather(Builder& builder);
void build_all_to_all(Builder& builder);

double compose_barrier(Problem& problem, const Costs& costs);
double compose_broadcast(Problem& problem, const Costs& costs);
double compose_reduce(Problem& problem, const Costs& costs);
double compose_all_reduce(Problem& problem, const Costs& costs);
double compose_reduce_scatter(Problem& problem, const Costs& costs);
double compose_scatter(Problem& problem, const Costs& costs);
double compose_gather(Problem& problem, const Costs& costs);
double compose_all_gather(Problem& problem, const Costs& costs);
double compose_all_to_all(Problem& problem, const Costs& costs);

}  // namespace tutti::internal::node_first
