// What the tests of schedules share: random choices from a printed seed, and which ranks are in place.
#pragma once

#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "algo/registry.h"

namespace tutti::internal {

enum class InPlace { none, all, mixed };

inline std::vector<bool> ranks_in_place(int size, InPlace which, std::mt19937_64& random) {
  std::vector<bool> in_place(static_cast<size_t>(size), which == InPlace::all);
  if (which == InPlace::mixed)
    for (size_t rank = 0; rank < in_place.size(); ++rank) in_place[rank] = random() % 2 == 0;
  return in_place;
}

// Those that know nothing of nodes, and work in any group. The others are proved in test_node_first.cc.
inline std::vector<Algorithm> flat(std::span<const Algorithm> some) {
  std::vector<Algorithm> all(some.begin(), some.end());
  std::erase_if(all, [](const Algorithm& algorithm) { return algorithm.compose != nullptr; });
  return all;
}

// How a failing test names its parameter.
inline std::ostream& operator<<(std::ostream& out, const Algorithm& algorithm) {
  return out << name(algorithm.operation) << ':' << algorithm.name;
}

inline std::string text_of(const Algorithm& algorithm, const Problem& problem) {
  return std::string(name(algorithm.operation)) + ":" + algorithm.name + " size " + std::to_string(problem.size) +
         " root " + std::to_string(problem.root) + " count " + std::to_string(problem.count) + " element_bytes " +
         std::to_string(problem.element_bytes) + " segment_bytes " + std::to_string(problem.segment_bytes) + " radix " +
         std::to_string(problem.radix);
}

}  // namespace tutti::internal
