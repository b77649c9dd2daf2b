#include "src/core/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace tutti::internal {
namespace {

using nlohmann::json;

// Far less than what an exchange takes.
constexpr size_t kMostWords = size_t{128} << 10;

bool is_row(const json& row) {
  constexpr size_t kFields = 6;
  if (!row.is_array() || row.size() != kFields) return false;
  return std::all_of(row.begin(), row.begin() + 4, [](const json& field) { return field.is_number_unsigned(); }) &&
         row[4].is_string() && row[5].is_string();
}

std::string both(const std::string& one, const std::string& other) {
  if (one.empty()) return other;
  return other.empty() ? one : one + "; nor did one the other way";
}

}  // namespace

std::vector<Delegates> delegates(std::span<const int> node_of, const std::function<bool(int, int)>& is_joined) {
  std::vector<Delegates> result;
  std::set<std::pair<int, int>> known;
  const auto count = static_cast<int>(node_of.size());
  for (int lower = 0; lower < count; ++lower)
    for (int upper = lower + 1; upper < count; ++upper) {
      const auto nodes = std::minmax(node_of[static_cast<size_t>(lower)], node_of[static_cast<size_t>(upper)]);
      if (nodes.first == nodes.second || known.contains(nodes) || !is_joined(lower, upper)) continue;
      known.insert(nodes);
      result.push_back({lower, upper});
    }
  return result;
}

std::string encode(const Hearings& hearings) {
  json rows = json::array();
  size_t words = 0;
  for (const auto& [rank, hearing] : hearings) {
    words += hearing.trouble.size() + hearing.untried.size();
    const bool has_words = words <= kMostWords;
    const std::string cut = hearing.trouble.empty() ? "" : "no packet came through";
    rows.push_back({static_cast<uint32_t>(rank), hearing.paths, hearing.tried, hearing.heard,
                    has_words ? hearing.trouble : cut, has_words ? hearing.untried : ""});
  }
  // Whatever a device's name holds.
  return rows.dump(-1, ' ', true, json::error_handler_t::replace);
}

Result<Hearings> decode_hearings(std::string_view text) {
  const json rows = json::parse(text, nullptr, false);
  Hearings hearings;
  if (!rows.is_array() || !std::all_of(rows.begin(), rows.end(), is_row))
    return Status(Code::mismatch, "not of this version's form");
  for (const json& row : rows)
    hearings[row[0].get<int>()] = {.paths = row[1].get<uint32_t>(),
                                   .tried = row[2].get<uint32_t>(),
                                   .heard = row[3].get<uint32_t>(),
                                   .trouble = row[4].get<std::string>(),
                                   .untried = row[5].get<std::string>()};
  return hearings;
}

Trial trial_of(const Hearing& lower, const Hearing& upper) {
  Trial trial;
  const uint32_t tried = lower.tried & upper.tried;
  const uint32_t works = tried & lower.heard & upper.heard;
  const uint32_t untried = (lower.paths | upper.paths) & ~tried;
  const std::string trouble = both(lower.trouble, upper.trouble);
  if (works == 0 && tried != 0 && untried == 0) return {.is_broken = true, .why = trouble, .silent = ""};
  if (works != tried) trial.silent = trouble;
  if (works != 0) return trial;
  const std::string& why = lower.untried.empty() ? upper.untried : lower.untried;
  trial.why = fmt::format("by addresses alone, since packets were not tried: {}",
                          why.empty() ? "the two do not know the same paths" : why);
  return trial;
}

bool misses_any(const Hearings& hearings) {
  return std::ranges::any_of(hearings, [](const auto& entry) { return entry.second.heard != entry.second.tried; });
}

}  // namespace tutti::internal
