// Values of elements as expressions over the ranks' inputs. Equal expressions are one node, so that to compare two
// values bit by bit is to compare two numbers.
// A node is a function of a position x in the input: input of rank r at x, or nodes at x combined in order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace tutti::internal::proof {

using NodeId = int32_t;
inline constexpr NodeId kUndefined = -1;  // memory that nobody has written

class Expressions {
 public:
  explicit Expressions(int size);

  // The input of a rank.
  NodeId input_of(int rank) const { return rank; }
  // The nodes combined in this order, in one pass. Error: an operand is undefined or finished, or a rank's input would
  // stand in the result twice.
  Result<NodeId> combine(const std::vector<NodeId>& operands, bool finish);

  // Whether every rank's input stands in it, and it was finished (for one rank alone: whether it is its input).
  bool is_complete(NodeId node) const;
  // "((0 1) 2)!": ranks in the order in which they are combined, ! where finished.
  std::string text(NodeId node) const;

 private:
  struct Node {
    std::vector<NodeId> operands;  // none: an input
    std::vector<uint64_t> ranks;   // a bit for each rank whose input stands in it
    bool finished = false;
  };
  int size_;
  std::vector<Node> nodes_;
  std::map<std::pair<bool, std::vector<NodeId>>, NodeId> known_;
};

}  // namespace tutti::internal::proof
