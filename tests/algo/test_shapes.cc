// Shapes and partitions: arithmetic that every algorithm stands on.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "algo/partition.h"
#include "algo/runs.h"
#include "algo/shapes/chain.h"
#include "algo/shapes/dissemination.h"
#include "algo/shapes/exchange.h"
#include "algo/shapes/knomial.h"
#include "algo/shapes/pairing.h"
#include "algo/shapes/ring.h"

namespace tutti::internal {
namespace {

TEST(Knomial, EightRanks) {
  // The drawing in shapes/knomial.h.
  const Tree root = knomial_tree(0, 8, 0, 2);
  EXPECT_EQ(root.parent, -1);
  EXPECT_EQ(root.children, (std::vector{1, 2, 4}));
  EXPECT_EQ(root.depth, 3);
  const Tree six = knomial_tree(6, 8, 0, 2);
  EXPECT_EQ(six.parent, 4);
  EXPECT_EQ(six.children, (std::vector{7}));
  EXPECT_EQ(knomial_subtree(4, 8, 2), 4);
  EXPECT_EQ(knomial_subtree(2, 8, 2), 2);
}

// Visits the subtree in the order own, children's subtrees; returns the ranks met, and the greatest depth.
int visit(int rank, int depth, const std::vector<Tree>& trees, std::vector<int>& met) {
  met.push_back(rank);
  int deepest = depth;
  for (const int child : trees[static_cast<size_t>(rank)].children) {
    EXPECT_EQ(trees[static_cast<size_t>(child)].parent, rank);
    deepest = std::max(deepest, visit(child, depth + 1, trees, met));
  }
  return deepest;
}

// From the root, own rank before children's subtrees, all ranks stand in order root, root+1, ...
void expect_rank_order(const std::vector<Tree>& trees, int root) {
  const int size = static_cast<int>(trees.size());
  std::vector<int> met;
  EXPECT_LE(visit(root, 0, trees, met), trees[0].depth);
  ASSERT_EQ(met.size(), trees.size());
  for (int place = 0; place < size; ++place) EXPECT_EQ(met[static_cast<size_t>(place)], (root + place) % size);
}

TEST(Knomial, SubtreesAreRunsOfRanks) {
  for (int size = 1; size <= 70; ++size)
    for (int radix = 2; radix <= 8; ++radix)
      for (const int root : {0, size / 3, size - 1}) {
        SCOPED_TRACE(testing::Message() << "size " << size << " radix " << radix << " root " << root);
        std::vector<Tree> trees;
        trees.reserve(static_cast<size_t>(size));
        for (int rank = 0; rank < size; ++rank) trees.push_back(knomial_tree(rank, size, root, radix));
        expect_rank_order(trees, root);
        for (int rank = 0; rank < size; ++rank) {
          std::vector<int> met;
          visit(rank, 0, trees, met);
          EXPECT_EQ(static_cast<int>(met.size()), knomial_subtree((rank - root + size) % size, size, radix));
        }
      }
}

TEST(Chain, EachRankHasOneChild) {
  for (int size = 1; size <= 9; ++size)
    for (int root = 0; root < size; ++root) {
      std::vector<Tree> trees;
      trees.reserve(static_cast<size_t>(size));
      for (int rank = 0; rank < size; ++rank) trees.push_back(chain_tree(rank, size, root));
      expect_rank_order(trees, root);
      for (const Tree& tree : trees) EXPECT_LE(tree.children.size(), 1U);
    }
}

TEST(Ring, BlocksTravelRight) {
  const Ring ring{1, 4};
  EXPECT_EQ(ring.right(), 2);
  EXPECT_EQ(ring.left(), 0);
  EXPECT_EQ(ring.from(0), 1);
  EXPECT_EQ(ring.from(2), 3);
  EXPECT_EQ(ring.from(8), 1);
}

TEST(Pairing, EachMeetsEachOnce) {
  for (int size = 1; size <= 20; ++size)
    for (int rank = 0; rank < size; ++rank) {
      std::set<int> met;
      for (int round = 0; round < size; ++round) {
        const int peer = partner(rank, size, round);
        EXPECT_EQ(partner(peer, size, round), rank);
        met.insert(peer);
      }
      EXPECT_EQ(static_cast<int>(met.size()), size);
    }
}

TEST(Dissemination, ReachesAllInTheFewestRounds) {
  for (int size = 1; size <= 70; ++size)
    for (int radix = 2; radix <= 8; ++radix) {
      int known = 1;
      const auto rounds_of_0 = dissemination(0, size, radix);
      EXPECT_EQ(static_cast<int>(rounds_of_0.size()), rounds(size, radix));
      for (const auto& round : rounds_of_0) {
        EXPECT_LT(static_cast<int>(round.size()), radix);
        int learned = 0;
        for (const auto& exchange : round) {
          EXPECT_EQ(exchange.from, known + learned) << "what is known must stay one run";
          EXPECT_EQ(exchange.to, (size - exchange.from) % size);
          EXPECT_LE(exchange.count, known) << "nobody can tell more than it knows";
          learned += exchange.count;
        }
        known += learned;
      }
      EXPECT_EQ(known, size);
    }
}

TEST(Exchange, SixRanks) {
  // The drawing in shapes/exchange.h.
  const Exchange two = exchange(2, 6, 2);
  EXPECT_EQ(two.captain, 2);
  EXPECT_EQ(two.team, (std::vector{3}));
  EXPECT_EQ(two.groups, (std::vector<std::vector<int>>{{0, 2}, {2, 5}}));
  EXPECT_EQ(exchange(3, 6, 2).captain, 2);
  EXPECT_TRUE(exchange(3, 6, 2).groups.empty());
  EXPECT_EQ(exchange(5, 6, 2).groups, (std::vector<std::vector<int>>{{4, 5}, {2, 5}}));
}

TEST(Exchange, GroupsAgreeAndHoldNeighbouringRuns) {
  for (int size = 1; size <= 70; ++size)
    for (int radix = 2; radix <= 8; ++radix) {
      std::vector<Exchange> shapes;
      std::vector<std::vector<int>> held;  // by each captain, in order
      for (int rank = 0; rank < size; ++rank) {
        shapes.push_back(exchange(rank, size, radix));
        auto& own = held.emplace_back();
        if (shapes.back().captain != rank) continue;
        own.push_back(rank);
        own.insert(own.end(), shapes.back().team.begin(), shapes.back().team.end());
      }
      const size_t round_count = shapes[0].groups.size();
      for (size_t round = 0; round < round_count; ++round) {
        auto next = held;
        for (int rank = 0; rank < size; ++rank) {
          const Exchange& shape = shapes[static_cast<size_t>(rank)];
          if (shape.captain != rank) continue;
          auto& all = next[static_cast<size_t>(rank)];
          all.clear();
          for (const int member : shape.groups[round]) {
            EXPECT_EQ(shapes[static_cast<size_t>(member)].groups[round], shape.groups[round]);
            const auto& part = held[static_cast<size_t>(member)];
            all.insert(all.end(), part.begin(), part.end());
          }
        }
        held = next;
      }
      std::vector<int> everyone(static_cast<size_t>(size));
      std::iota(everyone.begin(), everyone.end(), 0);
      for (int rank = 0; rank < size; ++rank) {
        if (shapes[static_cast<size_t>(rank)].captain == rank) {
          EXPECT_EQ(held[static_cast<size_t>(rank)], everyone);
        }
      }
    }
}

TEST(Partition, PartsCoverAllAndCutAtCacheLines) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4}, uint64_t{64}, uint64_t{65}, uint64_t{1000}, uint64_t{1} << 52})
    for (const int parts : {1, 2, 3, 7, 64, 4096}) {
      uint64_t at = 0;
      for (int i = 0; i < parts; ++i) {
        const Range range = part(bytes, parts, i);
        EXPECT_EQ(range.offset, at);
        if (range.bytes > 0) {
          EXPECT_EQ(range.offset % 64, 0U);
        }
        EXPECT_LE(range.bytes, bytes / static_cast<uint64_t>(parts) + 128) << "parts are nearly equal";
        at += range.bytes;
      }
      EXPECT_EQ(at, bytes);
    }
}

TEST(Partition, Segments) {
  EXPECT_EQ(segments({8, 10}, 4), (std::vector<Range>{{8, 4}, {12, 4}, {16, 2}}));
  EXPECT_EQ(segments({8, 4}, 4), (std::vector<Range>{{8, 4}}));
  EXPECT_EQ(segments({8, 0}, 4), (std::vector<Range>{{8, 0}}));
  EXPECT_EQ(segments({8, 10}, 0), (std::vector<Range>{{8, 10}}));
}

TEST(Partition, SegmentLengthBalancesAndStaysInBounds) {
  const double beta = 1e-4, extra = 0.1;
  EXPECT_EQ(pipeline_segment(100, 1, extra, beta), 16U << 10);
  EXPECT_EQ(pipeline_segment(uint64_t{1} << 30, 1, extra, beta), 256U << 10);
  // sqrt(4e6 * 0.1 / (1 * 1e-4)) = 63245, rounded up to a cache line.
  EXPECT_EQ(pipeline_segment(4000000, 1, extra, beta), 63296U);
  // Longer, where the messages of a pair would be too many.
  const uint64_t bytes = uint64_t{1} << 40;
  const uint64_t segment = pipeline_segment(bytes, 1, extra, beta, 6);
  EXPECT_EQ(segment % 64, 0U);
  EXPECT_LE(6 * ((bytes + segment - 1) / segment), kMaxMessagesPerPair);
}

TEST(Partition, RunsOfBlocksWrapOnce) {
  const Problem problem{.size = 5, .count = 3, .element_bytes = 2};
  EXPECT_EQ(block_runs(problem, 1, 3), (std::vector<Range>{{6, 18}}));
  EXPECT_EQ(block_runs(problem, 3, 4), (std::vector<Range>{{18, 12}, {0, 12}}));
  EXPECT_EQ(block_runs(problem, 0, 5), (std::vector<Range>{{0, 30}}));
}

}  // namespace
}  // namespace tutti::internal
