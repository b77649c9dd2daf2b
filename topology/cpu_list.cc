#include "topology/cpu_list.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>

namespace tutti::internal {
namespace {

// The number that the text begins with, taken off it; nothing where it begins with none.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= kMostCpus) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char letter) {
  if (text.empty() || text.front() != letter) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string to_string(const CpuList& cpus) {
  std::string text;
  for (size_t first = 0, last = 0; first < cpus.size(); first = last + 1) {
    for (last = first; last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1;) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", cpus[first]) : fmt::format("{}-{}", cpus[first], cpus[last]);
  }
  return text;
}

std::optional<CpuList> parse_cpu_list(std::string_view text) {
  CpuList cpus;
  if (text.empty()) return cpus;
  do {
    const auto first = take_number(text);
    const auto last = first && take(text, '-') ? take_number(text) : first;
    if (!first || !last || *last < *first || (!cpus.empty() && *first <= cpus.back())) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  } while (take(text, ','));
  return text.empty() ? std::optional(cpus) : std::nullopt;
}

CpuList own_cpus() {
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(kMostCpus));
  const size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  CpuList cpus;
  if (sched_getaffinity(0, bytes, set.get()) != 0) return cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu)
    if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
  return cpus;
}

bool contains(const CpuList& outer, const CpuList& inner) { return std::ranges::includes(outer, inner); }

bool contains(const CpuList& cpus, int cpu) { return std::ranges::binary_search(cpus, cpu); }

CpuList intersection(const CpuList& one, const CpuList& other) {
  CpuList both;
  std::ranges::set_intersection(one, other, std::back_inserter(both));
  return both;
}

}  // namespace tutti::internal
