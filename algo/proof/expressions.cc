// See expressions.h.
#include "algo/proof/expressions.h"

#include <fmt/format.h>

#include <bit>

namespace tutti::internal::proof {

Expressions::Expressions(int size) : size_(size) {
  const auto count = static_cast<size_t>(size);
  nodes_.resize(count);
  for (size_t rank = 0; rank < count; ++rank) {
    nodes_[rank].ranks.resize((count + 63) / 64);
    nodes_[rank].ranks[rank / 64] = uint64_t{1} << (rank % 64);
  }
}

Result<NodeId> Expressions::combine(const std::vector<NodeId>& operands, bool finish) {
  const auto known = known_.find({finish, operands});
  if (known != known_.end()) return known->second;
  Node node{operands, std::vector<uint64_t>((static_cast<size_t>(size_) + 63) / 64), finish};
  for (const NodeId operand : operands) {
    if (operand == kUndefined) return Status(Code::internal, "an operand was never written");
    const Node& part = nodes_[static_cast<size_t>(operand)];
    if (part.finished) return Status(Code::internal, fmt::format("operand {} is finished already", text(operand)));
    for (size_t i = 0; i < node.ranks.size(); ++i) {
      if ((node.ranks[i] & part.ranks[i]) != 0)
        return Status(Code::internal,
                      fmt::format("operand {} has a contribution that is there already", text(operand)));
      node.ranks[i] |= part.ranks[i];
    }
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(std::move(node));
  known_.emplace(std::pair{finish, operands}, id);
  return id;
}

bool Expressions::is_complete(NodeId node) const {
  if (node == kUndefined) return false;
  const Node& value = nodes_[static_cast<size_t>(node)];
  int ranks = 0;
  for (const uint64_t word : value.ranks) ranks += std::popcount(word);
  return ranks == size_ && (value.finished || size_ == 1);
}

std::string Expressions::text(NodeId node) const {
  if (node == kUndefined) return "nothing";
  const Node& value = nodes_[static_cast<size_t>(node)];
  if (value.operands.empty()) return std::to_string(node);
  std::string text = "(";
  for (const NodeId operand : value.operands) text += (text.size() > 1 ? " " : "") + this->text(operand);
  return text + (value.finished ? ")!" : ")");
}

}  // namespace tutti::internal::proof
