// Who sits where: which ranks share a node, and within it a package, a NUMA node, a last-level cache. Made from what
// the ranks published when they joined; the same on every rank. Uneven and interleaved layouts are normal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "topology/machine.h"

namespace tutti::internal {

// What a rank says of itself. The numbers are indices of its machine's lists; -1: it may run on several, or unknown.
struct RankPlace {
  int32_t node = -1;  // the lowest rank that it can share memory with, itself included: whatever their hosts' names are
  std::string host;   // for people
  CpuList cpus;       // that it may run on
  int32_t package = -1;
  int32_t numa = -1;
  int32_t l3 = -1;
  int32_t core = -1;

  std::string encode() const;
  // Parsed from outside. Errors: mismatch.
  static Result<RankPlace> decode(std::string_view bytes);
};

// Of a thread that may run on `cpus`; its node is not known yet.
RankPlace place_on(const Machine& machine, const CpuList& cpus);

enum class Level { node, package, numa, l3, core };

class RankMap {
 public:
  explicit RankMap(std::span<const RankPlace> places);

  int rank_count() const { return static_cast<int>(node_of_.size()); }
  int node_count() const { return static_cast<int>(first_.size()) - 1; }
  // Nodes are numbered by their lowest rank.
  int node_of(int rank) const { return node_of_[static_cast<size_t>(rank)]; }
  // Ascending.
  std::span<const int> ranks_of(int node) const;
  // A rank's number among those of its node, and the node's lowest rank.
  int local_rank(int rank) const { return local_rank_[static_cast<size_t>(rank)]; }
  int leader(int node) const { return ranks_of(node).front(); }

  // Whether the two are known to share this level.
  bool share(int one, int other, Level level) const;

  // All ranks, neighbours near: by node, package, NUMA node, L3 domain, core, rank.
  const std::vector<int>& near_order() const { return near_order_; }

 private:
  struct Seat {
    int32_t package, numa, l3, core;
  };

  std::vector<Seat> seats_;
  std::vector<int> node_of_, local_rank_;
  std::vector<int> by_node_;  // ranks, node after node
  std::vector<int> first_;    // of each node, in by_node_; and the end
  std::vector<int> near_order_;
};

}  // namespace tutti::internal
