// Node-first algorithms: first inside each node, then across, then inside again. Each stage is another, flat algorithm
// on some of the ranks; this puts them one after the other, for one segment of the data and then for the next.
//
//   lanes 2    node 0: ranks 0 1 2    node 1: ranks 3 4 5     A lane is one rank of each node, its owner there, and the
//   lane 0             0 ------------------- 3                share of the data that they carry across: each over its
//   lane 1               1 ------------------- 4              own NIC. One lane: a leader does it for the node. More
//                                                             lanes than ranks: a rank owns several.
//
// All ranks run the same stages in the same order, so messages meet; a segment's steps wait for the same bytes only,
// so inside and outside overlap. No step talks to ranks inside and across at once.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "algo/builder.h"
#include "algo/layout.h"
#include "algo/partition.h"
#include "algo/peers.h"

namespace tutti::internal::node_first {

enum class Side : uint8_t { in, across, out };

// One stage's operation on some of the ranks (algo/scope.h).
struct Part {
  Operation operation{};
  std::vector<int> members;
  int root = 0;        // number in members
  uint64_t bytes = 0;  // as Problem::bytes()
  std::vector<Slice> input, output;
  Finish finish = Finish::yes;
};

class Composer {
 public:
  explicit Composer(Builder& builder, size_t segments_in_flight = kInFlightPerPeer);

  int lanes() const { return problem_.composition.lanes; }
  const Layout& layout() const { return layout_; }
  int node_count() const { return layout_.node_count(); }
  int here() const { return here_; }
  int root_node() const { return layout_.node_of(problem_.root); }
  bool is_alone() const { return layout_.ranks_on(here_) == 1; }

  // Of a rooted operation the root owns lane 0 of its node.
  int owner(int node, int lane) const { return rank_at(node, lane % layout_.ranks_on(node)); }
  bool owns(int lane) const { return owner(here_, lane) == problem_.rank; }
  // By node.
  std::vector<int> owners(int lane) const;
  const std::vector<int>& inside() const { return layout_.ranks_of(here_); }

  // The ranks of a node whose blocks a lane carries are counted from 0: the lane's owner, and each lanes() further on.
  // -1: there are not so many.
  int carried(int node, int lane, int index) const;
  // The most that any node has of them.
  int most_carried() const { return (layout_.most() + lanes() - 1) / lanes(); }
  // Whether each node has one of this index.
  bool all_carry(int lane, int index) const { return lane + index * lanes() < layout_.fewest(); }

  // Begins a segment: its scratch is that of so many segments ago as are in flight, and its steps wait for those of
  // then.
  void next_segment();
  // Runs the part by the composition's algorithm for that side, or by the linear one. Nothing happens on other ranks.
  void run(Side side, const Part& part);
  void run_linear(Side side, const Part& part);
  // A message, or a copy where it is the same rank.
  void move(Side side, int from, int to, const std::vector<Slice>& source, const std::vector<Slice>& slice);

  // The node's sum of a slice at the lane's owner: there, where it lies; unfinished.
  Slice reduce_inside(int lane, Slice own);
  // From the lane's owner to its node.
  void broadcast_inside(Side side, int root, Slice slice);

 private:
  int rank_at(int node, int index) const;
  void run(Side side, const Part& part, const Stage& stage);

  Builder& builder_;
  const Problem& problem_;
  const Layout& layout_;
  int here_;
  using StepOfSide = std::array<StepId, 3>;
  struct Segment {
    uint64_t mark = 0;  // where its scratch begins
    StepOfSide last_steps{kNoStep, kNoStep, kNoStep};
  };
  std::vector<Segment> in_flight_;  // a ring
  size_t segments_ = 0;             // that have begun
  StepOfSide after_{kNoStep, kNoStep, kNoStep};
};

// A lane's share of `bytes`, in segments of the problem's length.
std::vector<std::vector<Range>> lane_pieces(const Problem& problem);
// How many segments the longest share has.
size_t most_pieces(const std::vector<std::vector<Range>>& pieces);

}  // namespace tutti::internal::node_first
