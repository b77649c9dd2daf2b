#include "src/info/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <tutti/tutti.hpp>
#include <vector>

namespace tutti::internal {
namespace {

using nlohmann::json;

// What each rank says of its world, on rank 0; on the others nothing.
std::vector<json> gather_worlds(tutti::Group& world) {
  const std::string own = world.describe();
  uint64_t longest = own.size();
  world.all_reduce(std::span(&longest, 1), tutti::Op::max);
  std::vector<uint8_t> text(own.begin(), own.end());
  text.resize(longest, ' ');
  std::vector<uint8_t> all(world.rank() == 0 ? longest * static_cast<size_t>(world.size()) : 0);
  world.gather(text, all, 0);
  std::vector<json> worlds;
  for (auto it = all.begin(); it != all.end(); it += static_cast<ptrdiff_t>(longest))
    worlds.push_back(json::parse(it, it + static_cast<ptrdiff_t>(longest)));
  return worlds;
}

// "1-3, 7".
std::string ranges(const std::vector<int>& ranks) {
  std::string text;
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[first]);
    if (last > first) text += fmt::format("-{}", ranks[last]);
    first = last + 1;
  }
  return text;
}

// Those whom a rank reaches in one way for one reason, in a line.
std::string describe(const json& world) {
  std::map<std::pair<std::string, std::string>, std::vector<int>> ways;
  for (const json& peer : world["peers"])
    ways[{peer["transport"].get<std::string>(), peer["why"].get<std::string>()}].push_back(peer["rank"].get<int>());
  std::string text = fmt::format("rank {} on {}\n", world["rank"].get<int>(), world["host"].get<std::string>());
  for (const auto& [way, ranks] : ways)
    text += fmt::format("  {:<6}to {}{}\n", way.first, ranges(ranks), way.second.empty() ? "" : "  " + way.second);
  return text;
}

}  // namespace

std::string peers_report(bool as_json) {
  tutti::Group world = tutti::init();
  const std::vector<json> worlds = gather_worlds(world);
  if (world.rank() != 0) return "";
  if (as_json) return json(worlds).dump(2) + "\n";
  std::string text;
  for (const json& one : worlds) text += describe(one);
  return text;
}

}  // namespace tutti::internal
