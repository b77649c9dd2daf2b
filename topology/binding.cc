#include "topology/binding.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <map>

namespace tutti::internal {
namespace {

constexpr int kBitsPerWord = 8 * sizeof(unsigned long);

template <class Part>
std::vector<CpuList> allowed_parts(const std::vector<Part>& parts, const CpuList& allowed) {
  std::vector<CpuList> units;
  for (const Part& part : parts)
    if (CpuList cpus = intersection(part.cpus, allowed); !cpus.empty()) units.push_back(std::move(cpus));
  return units;
}

std::vector<NumaNode> dram_nodes(const Machine& machine) {
  std::vector<NumaNode> nodes;
  for (const NumaNode& node : machine.numa_nodes)
    if (node.kind == MemoryKind::dram) nodes.push_back(node);
  return nodes;
}

// Whether the units hold every allowed processor: on a machine that shows a unit for a part of itself only, they are
// not what to bind to.
bool cover(const std::vector<CpuList>& units, const CpuList& allowed) {
  size_t count = 0;
  for (const CpuList& unit : units) count += unit.size();
  return count == allowed.size();
}

}  // namespace

std::optional<BindUnit> parse_bind_unit(std::string_view text) {
  if (text == "core") return BindUnit::core;
  if (text == "l3") return BindUnit::l3;
  if (text == "numa") return BindUnit::numa;
  if (text == "package") return BindUnit::package;
  return std::nullopt;
}

Result<std::vector<CpuList>> bindings(const Machine& machine, BindUnit unit, int rank_count) {
  auto units = allowed_units(machine, unit);
  if (!units) return units.status();
  return unit == BindUnit::core ? bind_to_cores(*units, rank_count) : bind_to_units(*units, rank_count);
}

Result<Machine> machine_to_bind_on(const std::string& topology_file) {
  if (!topology_file.empty()) return Machine::this_host_by_file(topology_file);
  const Result<Machine>& machine = Machine::this_host();
  if (machine.ok() && !machine.value().is_this_host)
    return Status(Code::unsupported, fmt::format("{} makes hwloc show another machine than this: nothing can be bound",
                                                 machine.value().source));
  return machine;
}

std::string crowding(const Machine& machine, const std::vector<CpuList>& places) {
  std::map<CpuList, size_t> on_place, on_cores;  // ranks; cores by their indices: threads of one core are one
  for (const CpuList& place : places) ++on_place[place];
  for (const auto& [place, ranks] : on_place) on_cores[cores_of(machine, place)] += ranks;
  const auto is_crowded = [](const auto& entry) { return entry.second > entry.first.size(); };
  const auto first = std::ranges::find_if(on_cores, is_crowded);
  if (first == on_cores.end()) return "";
  const auto& [cores, ranks] = *first;
  const auto others = std::ranges::count_if(on_cores, is_crowded) - 1;
  return fmt::format("{} ranks share {} core{} ({}){}", ranks, cores.size(), cores.size() == 1 ? "" : "s",
                     to_string(cores),
                     others > 0 ? fmt::format(", and so in {} more place{}", others, others == 1 ? "" : "s") : "");
}

Result<std::vector<CpuList>> allowed_units(const Machine& machine, BindUnit unit) {
  if (machine.allowed.empty()) return Status(Code::unsupported, "hwloc shows no processor that this process may use");
  const CpuList& allowed = machine.allowed;
  std::vector<CpuList> units;
  switch (unit) {
    case BindUnit::core:
      if (units = allowed_parts(machine.cores, allowed); cover(units, allowed)) return units;
      [[fallthrough]];
    case BindUnit::l3:
      if (units = allowed_parts(machine.l3_domains, allowed); cover(units, allowed)) return units;
      [[fallthrough]];
    case BindUnit::numa:
      if (units = allowed_parts(dram_nodes(machine), allowed); cover(units, allowed)) return units;
      [[fallthrough]];
    case BindUnit::package:
      if (units = allowed_parts(machine.packages, allowed); cover(units, allowed)) return units;
  }
  return std::vector<CpuList>{allowed};
}

std::vector<CpuList> bind_to_cores(const std::vector<CpuList>& cores, int rank_count) {
  const int core_count = static_cast<int>(cores.size());
  std::vector<CpuList> result;
  for (int rank = 0; rank < rank_count; ++rank) {
    const int core = rank % core_count;
    const int place = rank / core_count;  // among the ranks of this core
    const CpuList& threads = cores[core];
    const bool is_shared = place > 0 || rank + core_count < rank_count;
    result.push_back(is_shared ? CpuList{threads[place % threads.size()]} : threads);
  }
  return result;
}

std::vector<CpuList> bind_to_units(const std::vector<CpuList>& units, int rank_count) {
  std::vector<CpuList> result;
  for (int rank = 0; rank < rank_count; ++rank)
    result.push_back(units[static_cast<size_t>(rank) * units.size() / static_cast<size_t>(rank_count)]);
  return result;
}

CpuMask::CpuMask(const CpuList& cpus) : words_(static_cast<size_t>(cpus.back()) / kBitsPerWord + 1) {
  for (const int cpu : cpus) words_[cpu / kBitsPerWord] |= 1UL << cpu % kBitsPerWord;
}

int CpuMask::bind_this_thread() const noexcept {
  const auto* mask = reinterpret_cast<const cpu_set_t*>(words_.data());
  return sched_setaffinity(0, words_.size() * sizeof(unsigned long), mask) == 0 ? 0 : errno;
}

}  // namespace tutti::internal
