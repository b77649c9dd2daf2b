#include "src/core/cpu_share.h"

#include <sched.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace tutti::internal {
namespace {

// Large enough for any machine of today; a machine with more PUs is treated as if it had none to spare.
constexpr int kMostCpus = 8192;

std::set<int> parse(const std::string& text) {
  std::set<int> cpus;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) cpus.insert(std::stoi(item));
  return cpus;
}

}  // namespace

std::string allowed_cpus() {
  cpu_set_t* set = CPU_ALLOC(kMostCpus);
  const size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  std::string text;
  if (sched_getaffinity(0, bytes, set) == 0)
    for (int cpu = 0; cpu < kMostCpus; ++cpu)
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  CPU_FREE(set);
  return text;
}

// Hall's condition, looked at for the sets that ranks really have: the ranks whose PUs lie within one set need as many
// PUs as they are.
bool ranks_outnumber_cpus(const std::vector<std::string>& cpus) {
  std::vector<std::set<int>> sets;
  std::set<int> all;
  for (const std::string& text : cpus) {
    sets.push_back(parse(text));
    all.insert(sets.back().begin(), sets.back().end());
  }
  if (all.size() < sets.size()) return true;
  const std::set<std::set<int>> distinct(sets.begin(), sets.end());
  return std::ranges::any_of(distinct, [&](const std::set<int>& outer) {
    const auto inside =
        std::ranges::count_if(sets, [&](const std::set<int>& inner) { return std::ranges::includes(outer, inner); });
    return static_cast<size_t>(inside) > outer.size();
  });
}

}  // namespace tutti::internal
