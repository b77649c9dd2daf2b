// Which of a group's ranks share a node, as algorithms see it. A value, made once for each group; alike on all ranks.
//
//   node_of = {0 1 0 1 0}    nodes 0: 0 2 4    1: 1 3    fewest 2, most 3
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tutti::internal {

class Layout {
 public:
  Layout() = default;  // of no ranks
  // node_of[r]: of rank r, by any numbers. Here nodes are numbered by their lowest rank.
  explicit Layout(std::span<const int> node_of);

  int rank_count() const { return static_cast<int>(places_.size()); }
  int node_count() const { return static_cast<int>(nodes_.size()); }
  // Whether there is an inside and an outside: several nodes, one of which holds several ranks.
  bool has_two_levels() const { return node_count() > 1 && most_ > 1; }

  // Ascending.
  const std::vector<int>& ranks_of(int node) const { return nodes_[static_cast<size_t>(node)]; }
  int ranks_on(int node) const { return static_cast<int>(ranks_of(node).size()); }
  int node_of(int rank) const { return places_[static_cast<size_t>(rank)].node; }
  // A rank's number among those of its node.
  int local_rank(int rank) const { return places_[static_cast<size_t>(rank)].local; }

  // The ranks of the smallest node, and of the largest.
  int fewest() const { return fewest_; }
  int most() const { return most_; }
  bool is_even() const { return fewest_ == most_; }

 private:
  struct Place {
    int node, local;
  };
  std::vector<std::vector<int>> nodes_;
  std::vector<Place> places_;
  int fewest_ = 0, most_ = 0;
};

}  // namespace tutti::internal
