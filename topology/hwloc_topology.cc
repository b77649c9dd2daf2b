#include "topology/hwloc_topology.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "src/base/config_variable.h"
#include "topology/topology_file.h"

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;

// hwloc ends the process (assert) where this folder is there and holds nothing, as a sandbox may leave it.
Status check_numa_folder() {
  const fs::path root = foreign_variable("HWLOC_FSROOT");  // where hwloc looks instead
  const fs::path folder = (root.empty() ? "/" : root) / "sys/devices/system/node";
  std::error_code error;
  if (!fs::is_directory(folder, error)) return Status();
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name == "online" || (name.starts_with("node") && name.find_first_of("0123456789") == 4)) return Status();
  }
  if (error) return Status();  // hwloc cannot look into it either
  return Status(Code::unsupported, fmt::format("hwloc cannot read this machine: {} is empty", folder.string()));
}

Status set_file(hwloc_topology_t topology, const std::string& path) {
  auto text = read_topology_file(path);
  if (!text) return text.status();
  if (hwloc_topology_set_xmlbuffer(topology, text->data(), static_cast<int>(text->size())) == 0) return Status();
  return Status(Code::invalid_argument,
                fmt::format("topology file {}: hwloc cannot read it as XML: its text is damaged", path));
}

Status set_source(hwloc_topology_t topology, const MachineSource& source) {
  switch (source.kind) {
    case MachineSource::Kind::this_host:
      TUTTI_RETURN_IF_ERROR(check_numa_folder());
      // hwloc reads PCI from sysfs itself: its plug-in for libpciaccess adds vendors' names, and loses memory each
      // time.
      hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
      return Status();
    case MachineSource::Kind::xml_file: return set_file(topology, source.text);
    case MachineSource::Kind::synthetic:
      if (hwloc_topology_set_synthetic(topology, source.text.c_str()) == 0) return Status();
      return Status(Code::invalid_argument,
                    fmt::format("synthetic topology '{}': hwloc does not understand it; one that it does is "
                                "'package:2 numa:1 l3:2 core:4 pu:2'",
                                source.text));
  }
  return Status();
}

hwloc_topology_t empty_topology() {
  hwloc_topology_t topology = nullptr;
  return hwloc_topology_init(&topology) == 0 ? topology : nullptr;
}

}  // namespace

Result<Topology> load_topology(const MachineSource& source) {
  // hwloc unloads its plug-ins with its last topology, and what they hold is then lost: one topology stays.
  [[gnu::used]] static hwloc_topology_t keeper = empty_topology();
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return Status::system(Code::out_of_resources, "hwloc cannot make a topology", errno);
  Topology topology(raw);
  if (Status status = set_source(raw, source); !status.ok()) return status;
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(raw) == 0) return topology;
  if (source.kind == MachineSource::Kind::this_host)
    return Status::system(Code::unsupported, "hwloc cannot read this machine", errno);
  return Status(Code::invalid_argument, fmt::format("topology {}: hwloc cannot load it ({}): its text is damaged",
                                                    source.text, std::strerror(errno)));
}

CpuList list_of(hwloc_const_bitmap_t set) {
  CpuList cpus;
  if (set == nullptr || hwloc_bitmap_weight(set) < 0) return cpus;  // none, or infinite
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.push_back(cpu);
  return cpus;
}

std::string info_of(hwloc_obj_t object, const char* name) {
  const char* value = hwloc_obj_get_info_by_name(object, name);
  std::string text = value ? value : "";
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace tutti::internal
