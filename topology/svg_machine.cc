#include "topology/svg_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tutti::internal {
namespace {

bool is_allowed(const Machine& machine, const Core& core) { return !intersection(core.cpus, machine.allowed).empty(); }

class Boxes {
 public:
  Boxes(const Machine& machine, const DrawnRanks& ranks) : machine_(machine), ranks_(ranks) {}

  Box whole() const {
    std::vector<Box> packages, nodes;
    for (int i = 0; i < static_cast<int>(machine_.packages.size()); ++i) packages.push_back(package(i));
    for (int i = 0; i < static_cast<int>(machine_.numa_nodes.size()); ++i)
      if (package_of(i) < 0) nodes.push_back(numa(i));
    const size_t columns = packages.size() > 2 ? 2 : packages.size();
    std::vector<Box> parts{group_of(std::move(packages), columns), group_of(std::move(nodes), 2)};
    append_content(parts, {});
    return frame_of(Look::frame, machine_.host.empty() ? machine_.source : machine_.host + " (" + machine_.source + ")",
                    std::move(parts));
  }

 private:
  // The box in which something is drawn, by indices: that of a NUMA node, of a package, or of the machine.
  struct Home {
    int package = -1, numa = -1;
    bool operator==(const Home&) const = default;
  };
  using Indices = std::vector<int>;

  // A node that spans packages, or has no processors, is in none: -1.
  int package_of(int node) const { return machine_.package_around(machine_.numa_nodes[node].cpus); }

  // What is of a node that spans packages is drawn in its own package.
  Home home_of(int package, int node) const {
    if (node >= 0 && package_of(node) == package) return {package, node};
    return {package, -1};
  }

  Box package(int index) const {
    const Package& package = machine_.packages[index];
    std::vector<Box> nodes;
    for (int i = 0; i < static_cast<int>(machine_.numa_nodes.size()); ++i)
      if (package_of(i) == index) nodes.push_back(numa(i));
    std::vector<Box> parts{group_of(std::move(nodes), 2)};
    append_content(parts, {.package = index});
    return frame_of(Look::frame, title_of(package) + (package.model.empty() ? "" : ": " + package.model),
                    std::move(parts));
  }

  Box numa(int index) const {
    std::vector<Box> parts;
    append_content(parts, {package_of(index), index});
    return frame_of(Look::shaded, title_of(machine_.numa_nodes[index]), std::move(parts));
  }

  // Cores under their caches, those without one, and devices.
  void append_content(std::vector<Box>& parts, const Home& home) const {
    std::vector<Box> caches;
    for (int l3 = 0; l3 < static_cast<int>(machine_.l3_domains.size()); ++l3) {
      const Indices inside = cores_at(home, l3);
      if (inside.empty()) continue;
      std::vector<Box> content;
      append_cores(content, inside);
      caches.push_back(frame_of(Look::frame, cache_title(machine_.l3_domains[l3]), std::move(content)));
    }
    const size_t columns = square_columns(caches.size(), 2);
    parts.push_back(group_of(std::move(caches), columns));
    append_cores(parts, cores_at(home, -1));
    parts.push_back(tags_of(home));
    parts.push_back(devices_at(home));
  }

  static std::string cache_title(const L3Domain& cache) {
    if (cache.cache_bytes == 0) return "L3";
    return fmt::format("L3 {:.3g} MiB", static_cast<double>(cache.cache_bytes) / (1 << 20));
  }

  Indices cores_at(const Home& home) const {
    Indices found;
    for (int i = 0; i < static_cast<int>(machine_.cores.size()); ++i)
      if (home_of(machine_.cores[i].package, machine_.cores[i].numa) == home) found.push_back(i);
    return found;
  }

  Indices cores_at(const Home& home, int l3) const {
    Indices found = cores_at(home);
    std::erase_if(found, [&](int core) { return machine_.cores[core].l3 != l3; });
    return found;
  }

  void append_cores(std::vector<Box>& parts, const Indices& cores) const {
    std::vector<Box> boxes;
    for (const int core : cores) {
      const Look look = is_allowed(machine_, machine_.cores[core]) ? Look::core : Look::forbidden_core;
      boxes.push_back(box_of(look, std::to_string(core)));
      boxes.back().children = ranks_.discs(core);
      boxes.back().columns = std::max<size_t>(1, boxes.back().children.size());
    }
    const size_t columns = square_columns(boxes.size(), 2);
    parts.push_back(group_of(std::move(boxes), columns));
  }

  // At the foot of the cores of a home.
  Box tags_of(const Home& home) const {
    auto tags = ranks_.tags(cores_at(home));
    const size_t columns = square_columns(tags.size(), 4);
    return group_of(std::move(tags), columns);
  }

  Box devices_at(const Home& home) const {
    std::vector<Box> boxes;
    for (int i = 0; i < static_cast<int>(machine_.nics.size()); ++i) {
      const Nic& nic = machine_.nics[i];
      if (!nic.why_no_use.empty() || home_of(nic.place.package, nic.place.numa) != home) continue;
      boxes.push_back(box_of(Look::nic, nic.name()));
      boxes.back().second = second_line(nic);
      boxes.back().nic = i;
    }
    for (const Gpu& gpu : machine_.gpus) {
      if (home_of(gpu.place.package, gpu.place.numa) != home) continue;
      boxes.push_back(box_of(Look::gpu, gpu.name()));
      boxes.back().second = "GPU";
    }
    const size_t columns = square_columns(boxes.size(), 2);
    return group_of(std::move(boxes), columns);
  }

  static std::string second_line(const Nic& nic) {
    std::vector<std::string> parts;
    if (!nic.rdma.empty()) parts = nic.nets;
    if (nic.gbytes() > 0) parts.push_back(fmt::format("{:.3g} GB/s", nic.gbytes()));
    if (!nic.why_no_rdma.empty()) parts.emplace_back("no RDMA");
    return parts.empty() ? "NIC" : fmt::format("{}", fmt::join(parts, ", "));
  }

  const Machine& machine_;
  const DrawnRanks& ranks_;
};

}  // namespace

Box machine_box(const Machine& machine, const DrawnRanks& ranks) { return Boxes(machine, ranks).whole(); }

Box legend_box(const Machine& machine, const DrawnRanks& ranks) {
  std::vector<Box> samples{box_of(Look::core, "core")};
  const auto is_forbidden = [&](const Core& core) { return !is_allowed(machine, core); };
  if (std::ranges::any_of(machine.cores, is_forbidden)) samples.push_back(box_of(Look::forbidden_core, "not allowed"));
  if (std::ranges::any_of(machine.nics, [](const Nic& nic) { return nic.why_no_use.empty(); }))
    samples.push_back(box_of(Look::nic, "network device"));
  if (!machine.gpus.empty()) samples.push_back(box_of(Look::gpu, "GPU"));
  if (!ranks.empty()) samples.push_back(box_of(Look::rank, "rank"));
  const size_t columns = samples.size();
  std::vector<Box> lines{group_of(std::move(samples), columns)};
  if (ranks.have_lines())
    lines.push_back(box_of(Look::note, use_of_ranks(machine) == NicUse::rdma
                                           ? "Lines: from a rank to its RDMA device, the nearest."
                                           : "Lines: from a rank to its network device, the nearest; none has RDMA."));
  if (ranks.are_spread())
    lines.push_back(box_of(Look::note, "A rank that may run on several cores is drawn on one of them."));
  return group_of(std::move(lines), 1);
}

}  // namespace tutti::internal
