#include "topology/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "src/base/config_variable.h"
#include "topology/hwloc_topology.h"
#include "topology/sysfs.h"

namespace tutti::internal {
namespace {

template <class Each>
void for_each(hwloc_topology_t topology, hwloc_obj_type_t type, Each each) {
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;)
    each(object);
}

void read_packages(hwloc_topology_t topology, Machine& machine) {
  for_each(topology, HWLOC_OBJ_PACKAGE, [&](hwloc_obj_t object) {
    machine.packages.push_back(
        {static_cast<int>(object->os_index), info_of(object, "CPUModel"), list_of(object->cpuset)});
  });
}

void read_numa_nodes(hwloc_topology_t topology, Machine& machine) {
  for_each(topology, HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t object) {
    NumaNode node;
    node.os_index = static_cast<int>(object->os_index);
    node.memory_bytes = object->attr->numanode.local_memory;
    node.cpus = list_of(object->cpuset);
    const std::string subtype = object->subtype ? object->subtype : "";
    if (subtype == "MCDRAM" || subtype == "HBM")
      node.kind = MemoryKind::high_bandwidth;
    else if (subtype == "GPUMemory")
      node.kind = MemoryKind::gpu;
    else if (!subtype.empty() && subtype != "DRAM")
      node.kind = MemoryKind::other;
    machine.numa_nodes.push_back(node);
  });
}

// Nodes that say nothing about themselves. Linux gives each node without processors a number like any other; hwloc
// hangs it where it is near. Beside a node of the same processors, or above nodes of fewer, it is not their DRAM.
void guess_memory_kinds(Machine& machine) {
  std::vector<NumaNode*> without_cpus;
  for (NumaNode& node : machine.numa_nodes) {
    if (node.kind != MemoryKind::dram) continue;
    const bool is_second = std::ranges::any_of(machine.numa_nodes, [&](const NumaNode& other) {
      if (&other == &node || other.kind != MemoryKind::dram || other.cpus.empty()) return false;
      if (other.cpus == node.cpus) return other.os_index < node.os_index;
      return contains(node.cpus, other.cpus);
    });
    if (is_second) {
      node.kind = MemoryKind::other;
      node.kind_is_guessed = true;
    }
    if (is_second || node.cpus.empty()) without_cpus.push_back(&node);
  }
  // POWER9 shows the memory of each of its GPUs as such a node: as many of them as GPUs, and all of one size.
  const bool is_one_size = std::ranges::all_of(
      without_cpus, [&](const NumaNode* node) { return node->memory_bytes == without_cpus.front()->memory_bytes; });
  if (without_cpus.empty() || without_cpus.size() != machine.gpus.size() || !is_one_size) return;
  for (NumaNode* node : without_cpus) {
    node->kind = MemoryKind::gpu;
    node->kind_is_guessed = true;
  }
}

void read_caches(hwloc_topology_t topology, Machine& machine) {
  for_each(topology, HWLOC_OBJ_L3CACHE, [&](hwloc_obj_t object) {
    machine.l3_domains.push_back({object->attr->cache.size, list_of(object->cpuset)});
  });
}

// The index of the wanted element of `parts` with the fewest processors that has all of `cpus`; -1: none.
template <class Part, class Wanted>
int smallest_around(const std::vector<Part>& parts, const CpuList& cpus, Wanted wanted) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i)
    if (!cpus.empty() && wanted(parts[i]) && contains(parts[i].cpus, cpus) &&
        (best < 0 || parts[i].cpus.size() < parts[best].cpus.size()))
      best = i;
  return best;
}

template <class Part>
int smallest_around(const std::vector<Part>& parts, const CpuList& cpus) {
  return smallest_around(parts, cpus, [](const Part&) { return true; });
}

int dram_around(const Machine& machine, const CpuList& cpus) {
  return smallest_around(machine.numa_nodes, cpus, [](const NumaNode& node) { return node.kind == MemoryKind::dram; });
}

// Some machines (a few virtual ones) show processors, but no cores.
void read_cores(hwloc_topology_t topology, Machine& machine) {
  const bool has_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
  for_each(topology, has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU, [&](hwloc_obj_t object) {
    Core core;
    core.os_index = static_cast<int>(object->os_index);
    core.cpus = list_of(object->cpuset);
    core.package = smallest_around(machine.packages, core.cpus);
    core.l3 = smallest_around(machine.l3_domains, core.cpus);
    machine.cores.push_back(core);
  });
}

void join_device_to_parts(Machine& machine, Place& place) {
  place.package = smallest_around(machine.packages, place.cpus);
  place.numa = dram_around(machine, place.cpus);
}

// Once the kinds of memory are known.
void join_to_memory(Machine& machine) {
  for (Core& core : machine.cores) core.numa = dram_around(machine, core.cpus);
  for (Nic& nic : machine.nics) join_device_to_parts(machine, nic.place);
  for (Gpu& gpu : machine.gpus) join_device_to_parts(machine, gpu.place);
}

CpuList allowed_cpus(hwloc_topology_t topology, bool is_this_host) {
  CpuList allowed = list_of(hwloc_topology_get_allowed_cpuset(topology));
  if (!is_this_host) return allowed;
  // The topology knows the cgroup's limit; taskset's is the binding of this thread.
  const Bitmap mine(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, mine.get(), HWLOC_CPUBIND_THREAD) != 0) return allowed;
  return intersection(allowed, list_of(mine.get()));
}

// Whether the kernel said what processors there are. Where /sys is hidden hwloc asks them themselves, and makes numbers
// of packages, cores and memory up.
bool is_told_by_kernel(hwloc_topology_t topology) {
  const hwloc_obj_t root = hwloc_get_root_obj(topology);
  return std::any_of(root->infos, root->infos + root->infos_count, [](const hwloc_info_s& info) {
    return std::string_view(info.name) == "Backend" && std::string_view(info.value) == "Linux";
  });
}

void forget_numbers(Machine& machine) {
  machine.source += ", whose /sys is hidden";
  for (Package& package : machine.packages) package.os_index = -1;
  for (Core& core : machine.cores) core.os_index = -1;
}

// hwloc's variable that makes it show another machine where this one was asked for, in the order in which it looks.
std::string misleading_variable() {
  for (const char* name : {"HWLOC_FSROOT", "HWLOC_CPUID_PATH", "HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_THISSYSTEM"})
    if (const std::string value = foreign_variable(name); !value.empty()) return fmt::format("{}={}", name, value);
  return "hwloc";
}

std::string describe(const MachineSource& source, bool is_this_host) {
  switch (source.kind) {
    case MachineSource::Kind::xml_file: return "file " + source.text;
    case MachineSource::Kind::synthetic: return "synthetic " + source.text;
    case MachineSource::Kind::this_host: break;
  }
  return is_this_host ? "this host" : misleading_variable();
}

}  // namespace

Result<Machine> Machine::read(const MachineSource& source) {
  auto topology = load_topology(source);
  if (!topology) return topology.status();
  const hwloc_topology_t raw = topology->get();
  Machine machine;
  machine.is_this_host = source.kind == MachineSource::Kind::this_host && hwloc_topology_is_thissystem(raw) != 0;
  machine.source = describe(source, machine.is_this_host);
  machine.host = info_of(hwloc_get_root_obj(raw), "HostName");
  machine.allowed = allowed_cpus(raw, machine.is_this_host);
  read_packages(raw, machine);
  read_numa_nodes(raw, machine);
  read_caches(raw, machine);
  read_cores(raw, machine);
  read_devices(raw, machine);
  guess_memory_kinds(machine);
  join_to_memory(machine);
  if (machine.is_this_host) add_facts_of_sysfs(machine);
  if (machine.is_this_host && !is_told_by_kernel(raw)) forget_numbers(machine);
  return machine;
}

const Result<Machine>& Machine::this_host() {
  static const Result<Machine> machine = read(MachineSource());
  return machine;
}

Result<Machine> Machine::this_host_by_file(const std::string& path) {
  constexpr const char* kSetting = "TUTTI_TOPOLOGY_FILE";
  auto machine = read({MachineSource::Kind::xml_file, path});
  if (!machine) return Status(machine.status().code(), fmt::format("{}: {}", kSetting, machine.status().message()));
  const CpuList own = own_cpus(), known = machine->all_cpus();
  if (!contains(known, own))
    return Status(
        Code::invalid_argument,
        fmt::format("{}: topology file {} is of another machine than this: it has the processors {}, and this "
                    "process may use {}",
                    kSetting, path, to_string(known), to_string(own)));
  if (!own.empty()) machine->allowed = own;
  machine->source += fmt::format(" ({})", kSetting);
  return machine;
}

std::string Nic::all_names() const {
  return rdma.empty() || nets.empty() ? name() : fmt::format("{} ({})", rdma, fmt::join(nets, " "));
}

std::string Nic::name() const {
  if (!rdma.empty()) return rdma;
  return nets.empty() ? pci : nets.front();
}

double Nic::gbytes() const {
  if (pci_gbytes == 0 || port_gbytes == 0) return std::max(pci_gbytes, port_gbytes);
  return std::min(pci_gbytes, port_gbytes);
}

int Machine::core_of(int cpu) const {
  const auto found = std::ranges::find_if(cores, [&](const Core& core) { return contains(core.cpus, cpu); });
  return found == cores.end() ? -1 : static_cast<int>(found - cores.begin());
}

CpuList Machine::all_cpus() const {
  CpuList all;
  for (const Core& core : cores) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  std::ranges::sort(all);
  return all;
}

int Machine::package_around(const CpuList& cpus) const { return smallest_around(packages, cpus); }

int Machine::memory_node_of(int cpu) const {
  if (const int node = dram_around(*this, {cpu}); node >= 0) return node;
  const auto any = std::ranges::find_if(numa_nodes, &NumaNode::takes_host_memory);
  return any == numa_nodes.end() ? -1 : static_cast<int>(any - numa_nodes.begin());
}

int Machine::find_nic(const std::string& name) const {
  const auto found = std::ranges::find_if(nics, [&](const Nic& nic) {
    return nic.rdma == name || nic.pci == name || std::ranges::count(nic.nets, name) > 0;
  });
  return found == nics.end() || name.empty() ? -1 : static_cast<int>(found - nics.begin());
}

int Machine::find_gpu(const std::string& name) const {
  const auto found = std::ranges::find_if(
      gpus, [&](const Gpu& gpu) { return gpu.pci == name || std::ranges::count(gpu.names, name) > 0; });
  return found == gpus.end() ? -1 : static_cast<int>(found - gpus.begin());
}

std::vector<int> cores_of(const Machine& machine, const CpuList& cpus) {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(machine.cores.size()); ++i)
    if (!intersection(machine.cores[i].cpus, cpus).empty()) found.push_back(i);
  return found;
}

const char* to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::dram: return "DRAM";
    case MemoryKind::high_bandwidth: return "high bandwidth";
    case MemoryKind::gpu: return "GPU";
    case MemoryKind::other: break;
  }
  return "other";
}

}  // namespace tutti::internal
