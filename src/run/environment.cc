#include "src/run/environment.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace tutti::internal {
namespace {

// The last two would send ranks elsewhere, had somebody set them for another job.
constexpr std::string_view kNames[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TUTTI_SECRET",
    "TUTTI_STORE_SERVED",
    "TUTTI_STORE_FILE",
    "TORCHELASTIC_USE_AGENT_STORE",
};

std::string_view name_of(std::string_view assignment) { return assignment.substr(0, assignment.find('=')); }

}  // namespace

bool is_set_by_launcher(std::string_view name) { return std::ranges::find(kNames, name) != std::end(kNames); }

std::optional<std::string> find_variable(std::string_view name) {
  for (char** variable = environ; variable && *variable; ++variable)
    if (name_of(*variable) == name) return *variable;
  return std::nullopt;
}

std::vector<std::string> settings_among(std::span<const std::string> variables) {
  constexpr std::string_view kRead[] = {"TUTTI_TOPOLOGY_FILE", "TUTTI_INTERFACE", "TUTTI_PORT_RANGE"};
  std::vector<std::string> settings;
  std::ranges::copy_if(variables, std::back_inserter(settings), [&](const std::string& variable) {
    return std::ranges::find(kRead, name_of(variable)) != std::end(kRead);
  });
  return settings;
}

RankEnvironment::RankEnvironment(RankNumber number, const JobAddress& job, std::span<const std::string> additions) {
  for (char** variable = environ; variable && *variable; ++variable)
    if (!is_set_by_launcher(name_of(*variable))) variables_.emplace_back(*variable);
  for (const std::string& addition : additions) set(addition);
  set(fmt::format("RANK={}", number.rank));
  set(fmt::format("WORLD_SIZE={}", job.size));
  set(fmt::format("LOCAL_RANK={}", number.local_rank));
  set("MASTER_ADDR=" + job.host);
  set(fmt::format("MASTER_PORT={}", job.port));
  set("TUTTI_SECRET=" + job.secret);
  set("TUTTI_STORE_SERVED=1");
  for (std::string& variable : variables_) pointers_.push_back(variable.data());
  pointers_.push_back(nullptr);
}

void RankEnvironment::set(std::string assignment) {
  const std::string_view name = name_of(assignment);
  const auto found = std::ranges::find_if(variables_, [&](const std::string& one) { return name_of(one) == name; });
  if (found == variables_.end())
    variables_.push_back(std::move(assignment));
  else
    *found = std::move(assignment);
}

size_t RankEnvironment::bytes() const {
  size_t sum = 0;
  for (const std::string& variable : variables_) sum += variable.size() + 1 + sizeof(char*);
  return sum;
}

}  // namespace tutti::internal
