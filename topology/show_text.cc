#include <fmt/format.h>

#include <algorithm>

#include "topology/show.h"

namespace tutti::internal {
namespace {

std::string bytes_text(uint64_t bytes) {
  constexpr double kUnit = 1024;
  const char* const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= kUnit && unit + 1 < std::size(names)) {
    value /= kUnit;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, names[unit]);
}

std::string counted(size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  return fmt::format("{}", fmt::join(parts, between));
}

std::string place_text(const Machine& machine, const Place& place) {
  std::vector<std::string> parts;
  if (place.numa >= 0) parts.push_back(fmt::format("NUMA node {}", machine.numa_nodes[place.numa].os_index));
  if (place.package >= 0) parts.push_back(title_of(machine.packages[place.package]));
  if (parts.empty()) parts.emplace_back("place unknown");
  if (place.is_guessed) parts.emplace_back("guessed");
  return joined(parts, ", ");
}

std::string speed_text(const Nic& nic) {
  std::vector<std::string> parts;
  if (nic.pci_gbytes > 0) parts.push_back(fmt::format("PCI {:.3g} GB/s", nic.pci_gbytes));
  if (nic.port_gbytes > 0) parts.push_back(fmt::format("port {:.3g} GB/s", nic.port_gbytes));
  return parts.empty() ? "speed unknown" : joined(parts, ", ");
}

template <class Part>
std::string allowed_of(const Machine& machine, const Part& part) {
  const CpuList allowed = intersection(part.cpus, machine.allowed);
  if (allowed.size() == part.cpus.size()) return "";
  return allowed.empty() ? ", none allowed" : fmt::format(", allowed {}", to_string(allowed));
}

std::string node_line(const Machine& machine, const NumaNode& node) {
  return fmt::format("{}{}, PUs {}{}\n", title_of(node), node.kind_is_guessed ? " (guessed)" : "",
                     node.cpus.empty() ? "none" : to_string(node.cpus), allowed_of(machine, node));
}

std::string gpu_line(const Machine& machine, const Gpu& gpu) {
  std::vector<std::string> parts{gpu.name() + ":"};
  if (gpu.name() != gpu.pci) parts.push_back(gpu.pci + ";");
  if (!gpu.model.empty()) parts.push_back(gpu.model + ";");
  parts.push_back(place_text(machine, gpu.place));
  return fmt::format("GPU {}\n", joined(parts, " "));
}

// Below a package: what lies within it, indented.
std::string package_text(const Machine& machine, int index) {
  const Package& package = machine.packages[index];
  const auto cores = std::ranges::count(machine.cores, index, &Core::package);
  std::string text = fmt::format(
      "  {}: {}{}, PUs {}{}\n", title_of(package), counted(static_cast<size_t>(cores), "core"),
      package.model.empty() ? "" : ", " + package.model, to_string(package.cpus), allowed_of(machine, package));
  const auto is_inside = [&](const CpuList& cpus) { return !cpus.empty() && contains(package.cpus, cpus); };
  for (const NumaNode& node : machine.numa_nodes)
    if (is_inside(node.cpus)) text += "    " + node_line(machine, node);
  for (const L3Domain& l3 : machine.l3_domains)
    if (is_inside(l3.cpus)) text += fmt::format("    L3 {}: PUs {}\n", bytes_text(l3.cache_bytes), to_string(l3.cpus));
  for (const Nic& nic : machine.nics)
    if (nic.place.package == index) text += "    NIC " + device_text(machine, nic);
  for (const Gpu& gpu : machine.gpus)
    if (gpu.place.package == index) text += "    " + gpu_line(machine, gpu);
  return text;
}

std::string headline(const Machine& machine) {
  return fmt::format("{} ({}): {}, {}, {}, {}; {} of {} allowed ({})\n",
                     machine.host.empty() ? "machine" : machine.host, machine.source,
                     counted(machine.packages.size(), "package"), counted(machine.numa_nodes.size(), "NUMA node"),
                     counted(machine.l3_domains.size(), "L3 domain"), counted(machine.cores.size(), "core"),
                     machine.allowed.size(), counted(machine.all_cpus().size(), "PU"), to_string(machine.allowed));
}

}  // namespace

std::string title_of(const Package& package) {
  return package.os_index < 0 ? "package without a number" : fmt::format("package {}", package.os_index);
}

std::string title_of(const NumaNode& node) {
  if (node.memory_bytes == 0) return fmt::format("NUMA node {}: no memory shown", node.os_index);
  return fmt::format("NUMA node {}: {} {}", node.os_index, bytes_text(node.memory_bytes), to_string(node.kind));
}

std::string device_text(const Machine& machine, const Nic& nic) {
  std::vector<std::string> parts;
  if (!nic.nets.empty() && nic.name() != nic.nets.front()) parts.push_back("net " + joined(nic.nets, " "));
  if (!nic.pci.empty() && nic.name() != nic.pci) parts.push_back(nic.pci);
  if (!nic.model.empty()) parts.push_back(nic.model);
  parts.push_back(place_text(machine, nic.place));
  if (!nic.placed_by.empty()) parts.push_back("placed by " + nic.placed_by);
  parts.push_back(speed_text(nic));
  for (const RdmaPort& port : nic.ports)
    parts.push_back(fmt::format("port {} {} {}", port.number, port.state, port.link_layer));
  const std::string usable = !nic.why_no_use.empty()    ? "not usable: " + nic.why_no_use
                             : !nic.why_no_rdma.empty() ? "no RDMA: " + nic.why_no_rdma
                                                        : "usable for RDMA";
  return fmt::format("{}: {}: {}\n", nic.name(), joined(parts, "; "), usable);
}

std::string summary_text(const Machine& machine) {
  std::string text = headline(machine);
  for (const Package& package : machine.packages)
    if (!package.model.empty()) text += fmt::format("  {}: {}\n", title_of(package), package.model);
  for (const Nic& nic : machine.nics)
    if (nic.why_no_use.empty())
      text += fmt::format("  NIC {}: {}, {}{}\n", nic.all_names(), place_text(machine, nic.place), speed_text(nic),
                          nic.why_no_rdma.empty() ? ", RDMA" : "");
  for (const Gpu& gpu : machine.gpus) text += fmt::format("  GPU {}: {}\n", gpu.name(), place_text(machine, gpu.place));
  return text;
}

std::string to_text(const Machine& machine) {
  std::string text = headline(machine);
  for (int i = 0; i < static_cast<int>(machine.packages.size()); ++i) text += package_text(machine, i);
  const auto is_nowhere = [&](const CpuList& cpus) {
    return std::ranges::none_of(machine.packages,
                                [&](const Package& package) { return !cpus.empty() && contains(package.cpus, cpus); });
  };
  for (const NumaNode& node : machine.numa_nodes)
    if (is_nowhere(node.cpus)) text += "  " + node_line(machine, node);
  for (const Nic& nic : machine.nics)
    if (nic.place.package < 0) text += "  NIC " + device_text(machine, nic);
  for (const Gpu& gpu : machine.gpus)
    if (gpu.place.package < 0) text += "  " + gpu_line(machine, gpu);
  for (const std::string& display : machine.displays) text += fmt::format("  display {}: no GPU\n", display);
  return text;
}

}  // namespace tutti::internal
