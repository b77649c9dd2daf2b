// Cases of every collective over the dimensions that matter: a sample in which every pair of values occurs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collective_case.h"

namespace tutti_test {

extern const std::vector<Operation> kOperations;
inline constexpr uint64_t kMostCount = 1024 * 1024;

// By number of ranks, of those given; with at most so many elements a block. Alike wherever the seed is.
std::map<int, std::vector<Case>> sampled_cases(const std::vector<int>& ranks, uint64_t most_count, uint32_t seed);

// TUTTI_TEST_SEED, else a fixed one.
uint32_t sample_seed();

}  // namespace tutti_test
