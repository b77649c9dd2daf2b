#include "topology/binding.h"

#include <fmt/core.h>
#include <hwloc.h>
#include <sched.h>

#include <cerrno>
#include <memory>

namespace tutti::internal {
namespace {

constexpr int kBitsPerWord = 8 * sizeof(unsigned long);

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, Destroy>;

Result<Topology> load_this_machine() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return Status::system(Code::out_of_resources, "hwloc cannot make a topology", errno);
  Topology topology(raw);
  if (hwloc_topology_load(raw) != 0) return Status::system(Code::unsupported, "hwloc cannot read this machine", errno);
  if (!hwloc_topology_is_thissystem(raw))
    return Status(Code::unsupported,
                  "hwloc was told by its environment (HWLOC_XMLFILE, HWLOC_SYNTHETIC or HWLOC_FSROOT) to read another "
                  "machine than this one: nothing can be bound");
  return topology;
}

CpuList list_of(hwloc_const_bitmap_t set) {
  CpuList cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

Result<std::vector<CpuList>> allowed_cores() {
  auto topology = load_this_machine();
  if (!topology) return topology.status();
  const hwloc_topology_t machine = topology->get();
  // The topology knows the cgroup's limit; taskset's is the binding of this thread.
  const Bitmap mine(hwloc_bitmap_alloc()), allowed(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(machine, mine.get(), HWLOC_CPUBIND_THREAD) != 0)
    return Status::system(Code::unsupported, "hwloc cannot tell this process's processors", errno);
  // Some machines (a few virtual ones) show processors, but no cores.
  const bool has_cores = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::vector<CpuList> cores;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(machine, type, core)) != nullptr;) {
    hwloc_bitmap_and(allowed.get(), core->cpuset, mine.get());
    if (!hwloc_bitmap_iszero(allowed.get())) cores.push_back(list_of(allowed.get()));
  }
  if (cores.empty()) return Status(Code::unsupported, "hwloc shows no processor that this process may use");
  return cores;
}

std::vector<CpuList> bindings(const std::vector<CpuList>& cores, int rank_count) {
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

CpuMask::CpuMask(const CpuList& cpus) : words_(static_cast<size_t>(cpus.back()) / kBitsPerWord + 1) {
  for (const int cpu : cpus) words_[cpu / kBitsPerWord] |= 1UL << cpu % kBitsPerWord;
}

int CpuMask::bind_this_thread() const noexcept {
  const auto* mask = reinterpret_cast<const cpu_set_t*>(words_.data());
  return sched_setaffinity(0, words_.size() * sizeof(unsigned long), mask) == 0 ? 0 : errno;
}

std::string to_string(const CpuList& cpus) {
  std::string text;
  for (size_t first = 0, last = 0; first < cpus.size(); first = last + 1) {
    for (last = first; last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1;) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", cpus[first]) : fmt::format("{}-{}", cpus[first], cpus[last]);
  }
  return text;
}

}  // namespace tutti::internal
