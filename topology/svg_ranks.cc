#include "topology/svg_ranks.h"

#include <fmt/core.h>

#include <algorithm>

namespace tutti::internal {
namespace {

constexpr size_t kMostLines = 32;
constexpr size_t kMostLetters = 24;  // of numbers on a disc

std::string numbers(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  return to_string(ranks);
}

std::string label(const std::vector<int>& ranks) {
  const std::string text = numbers(ranks);
  return text.size() <= kMostLetters ? text : fmt::format("{} ranks", ranks.size());
}

std::string tag_label(const std::vector<int>& ranks) {
  const std::string text = numbers(ranks);
  if (text.size() > kMostLetters) return fmt::format("{} ranks", ranks.size());
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", text);
}

Box line_start(Look look, std::string title, int nic) {
  Box box = box_of(look, std::move(title));
  box.to_nic = nic;
  return box;
}

}  // namespace

DrawnRanks::DrawnRanks(std::span<const DrawnRank> ranks) : are_bundled_(ranks.size() > kMostLines) {
  std::map<std::vector<int>, size_t> counts, placed;  // ranks that may use the same cores are spread over these
  for (const DrawnRank& rank : ranks) ++counts[rank.cores];
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::vector<int>& cores = ranks[i].cores;
    if (cores.empty()) continue;
    const int core = cores[placed[cores]++ * cores.size() / counts[cores]];
    by_core_[core][ranks[i].nic].push_back(static_cast<int>(i));
    are_spread_ = are_spread_ || cores.size() > 1;
    have_lines_ = have_lines_ || ranks[i].nic >= 0;
  }
}

std::vector<Box> DrawnRanks::discs(int core) const {
  std::vector<Box> boxes;
  const auto found = by_core_.find(core);
  if (found == by_core_.end()) return boxes;
  std::vector<int> all;
  for (const auto& [nic, ranks] : found->second) {
    all.insert(all.end(), ranks.begin(), ranks.end());
    boxes.push_back(line_start(Look::rank, label(ranks), nic));
  }
  if (are_bundled_) return {box_of(Look::rank, label(all))};
  return boxes;
}

std::vector<Box> DrawnRanks::tags(std::span<const int> cores) const {
  std::vector<Box> boxes;
  if (!are_bundled_) return boxes;
  ByNic together;
  for (const int core : cores)
    if (const auto found = by_core_.find(core); found != by_core_.end())
      for (const auto& [nic, ranks] : found->second)
        together[nic].insert(together[nic].end(), ranks.begin(), ranks.end());
  for (const auto& [nic, ranks] : together)
    if (nic >= 0) boxes.push_back(line_start(Look::tag, tag_label(ranks), nic));
  return boxes;
}

}  // namespace tutti::internal
