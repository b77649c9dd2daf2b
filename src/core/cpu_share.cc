#include "src/core/cpu_share.h"

#include <algorithm>
#include <set>

namespace tutti::internal {

// Hall's condition, looked at for the sets that ranks really have: the ranks whose PUs lie within one set need as many
// PUs as they are.
bool ranks_outnumber_cpus(const std::vector<CpuList>& cpus) {
  std::set<int> all;
  for (const CpuList& list : cpus) all.insert(list.begin(), list.end());
  if (all.size() < cpus.size()) return true;
  const std::set<CpuList> distinct(cpus.begin(), cpus.end());
  return std::ranges::any_of(distinct, [&](const CpuList& outer) {
    const auto inside = std::ranges::count_if(cpus, [&](const CpuList& inner) { return contains(outer, inner); });
    return static_cast<size_t>(inside) > outer.size();
  });
}

}  // namespace tutti::internal
