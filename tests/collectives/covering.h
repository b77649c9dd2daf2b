// A seeded sample of a product of dimensions in which every pair of values of two dimensions occurs at least once.
#pragma once

#include <functional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace tutti_test {

using Row = std::vector<int>;  // one value index per dimension

// `is_valid` says which rows may be used; pairs that no valid row shows after many tries are taken not to exist.
inline std::vector<Row> pairwise_sample(const std::vector<int>& sizes, const std::function<bool(const Row&)>& is_valid,
                                        uint32_t seed) {
  constexpr int kCandidates = 40, kMostBarren = 300;
  std::mt19937 random(seed);
  std::set<std::tuple<int, int, int, int>> covered;
  const auto for_pairs = [&](const Row& row, const auto& visit) {
    for (int a = 0; a < static_cast<int>(row.size()); ++a)
      for (int b = a + 1; b < static_cast<int>(row.size()); ++b) visit(std::tuple{a, row[a], b, row[b]});
  };
  const auto draw = [&] {
    Row row;
    do {
      row.clear();
      for (int size : sizes) row.push_back(static_cast<int>(random() % static_cast<unsigned>(size)));
    } while (!is_valid(row));
    return row;
  };
  std::vector<Row> rows;
  for (int barren = 0; barren < kMostBarren;) {
    Row best;
    int best_gain = 0;
    for (int i = 0; i < kCandidates; ++i) {
      const Row row = draw();
      int gain = 0;
      for_pairs(row, [&](const auto& pair) { gain += !covered.contains(pair); });
      if (gain > best_gain) std::tie(best, best_gain) = std::pair{row, gain};
    }
    if (best_gain == 0) {
      ++barren;
      continue;
    }
    for_pairs(best, [&](const auto& pair) { covered.insert(pair); });
    rows.push_back(best);
  }
  return rows;
}

}  // namespace tutti_test
