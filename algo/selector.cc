// See selector.h. Pure functions; called where plans are made.
#include "algo/selector.h"

#include <fmt/format.h>

#include <string>

#include "algo/layout.h"

namespace tutti::internal {
namespace {

bool fits(const Algorithm& algorithm, const Problem& problem) {
  return algorithm.fits == nullptr || algorithm.fits(problem);
}

std::string algorithm_names(Operation operation) {
  std::string names;
  for (const Algorithm& algorithm : algorithms(operation)) {
    if (!names.empty()) names += ", ";
    names += algorithm.name;
  }
  return names;
}

Status refused(std::string message) { return {Code::invalid_argument, std::move(message)}; }

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Status parse_entry(std::string_view entry, Overrides& overrides) {
  const size_t colon = entry.find(':');
  if (colon == std::string_view::npos)
    return refused(
        fmt::format("algorithm override \"{}\" is not of the form operation:algorithm, as in "
                    "all_reduce:ring; there are {}",
                    entry, operation_names()));
  const std::string_view operation_name = trimmed(entry.substr(0, colon));
  const std::string_view algorithm_name = trimmed(entry.substr(colon + 1));
  const auto operation = operation_named(operation_name);
  if (!operation)
    return refused(fmt::format("algorithm override \"{}\": no operation is called \"{}\"; there are {}", entry,
                               operation_name, operation_names()));
  const Algorithm*& chosen = overrides[static_cast<size_t>(*operation)];
  if (chosen != nullptr)
    return refused(
        fmt::format("algorithm override \"{}\": {} has one already, \"{}\"", entry, operation_name, chosen->name));
  for (const Algorithm& algorithm : algorithms(*operation))
    if (algorithm_name == algorithm.name) chosen = &algorithm;
  if (chosen != nullptr) return {};
  return refused(fmt::format("algorithm override \"{}\": {} has no algorithm called \"{}\"; it has {}", entry,
                             operation_name, algorithm_name, algorithm_names(*operation)));
}

}  // namespace

std::string operation_names() {
  std::string names;
  for (int i = 0; i < kOperationCount; ++i) {
    if (i > 0) names += ", ";
    names += name(static_cast<Operation>(i));
  }
  return names;
}

Result<Overrides> parse_overrides(std::string_view text) {
  Overrides overrides{};
  if (trimmed(text).empty()) return overrides;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const Status status = parse_entry(trimmed(text.substr(begin, end - begin)), overrides);
    if (!status.ok()) return status;
    begin = end + 1;
  }
  return overrides;
}

Choice priced(const Algorithm& algorithm, const Problem& problem, const Costs& costs) {
  Choice choice{&algorithm, problem};
  if (algorithm.compose != nullptr) {
    choice.cost_us = algorithm.compose(choice.problem, costs);
    return choice;
  }
  const bool one_node = problem.layout == nullptr || problem.layout->node_count() == 1;
  const CostParameters& cost = one_node ? costs.within : costs.across;
  if (algorithm.tune != nullptr) algorithm.tune(choice.problem, cost);
  choice.cost_us = algorithm.cost(choice.problem, cost);
  return choice;
}

Choice select(const Problem& problem, const Costs& costs, const Overrides& overrides) {
  const Algorithm* wanted = overrides[static_cast<size_t>(problem.operation)];
  if (wanted != nullptr && fits(*wanted, problem)) return priced(*wanted, problem, costs);
  Choice best;
  for (const Algorithm& algorithm : algorithms(problem.operation)) {
    if (!fits(algorithm, problem)) continue;
    const Choice choice = priced(algorithm, problem, costs);
    if (best.algorithm == nullptr || choice.cost_us < best.cost_us) best = choice;
  }
  return best;
}

Schedule build(const Choice& choice) {
  Builder builder(choice.problem);
  choice.algorithm->build(builder);
  return builder.take();
}

}  // namespace tutti::internal
