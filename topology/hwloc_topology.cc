#include "topology/hwloc_topology.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tutti::internal {
namespace {

constexpr int kNewestXml = HWLOC_API_VERSION >> 16;

// hwloc's own answer to a bad file is "Invalid argument", and a line on stderr: we look first.
Status check_xml(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Status(Code::invalid_argument, fmt::format("topology file {}: {}", path, why));
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::system(Code::invalid_argument, fmt::format("topology file {}", path), errno);
  std::ostringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  if (text.empty()) return refuse("it is empty, or no regular file");
  const size_t start = text.find("<topology");
  if (start == std::string::npos) return refuse("it is no topology as hwloc writes it (no <topology> element)");
  int major = 1, minor = 0;  // version 1 did not say so
  const std::string element = text.substr(start, text.find('>', start) - start);
  if (const size_t at = element.find("version=\""); at != std::string::npos)
    std::sscanf(element.c_str() + at, "version=\"%d.%d", &major, &minor);
  if (major > kNewestXml)
    return refuse(
        fmt::format("it is of XML version {}.{}, and hwloc {} reads up to version {}: write it with an lstopo of "
                    "hwloc {}",
                    major, minor, HWLOC_VERSION, kNewestXml, kNewestXml));
  if (text.find("</topology>") == std::string::npos) return refuse("it is cut short (no </topology> at its end)");
  return Status();
}

Status set_source(hwloc_topology_t topology, const MachineSource& source) {
  switch (source.kind) {
    case MachineSource::Kind::this_host:
      // hwloc reads PCI from sysfs itself: its plug-in for libpciaccess adds vendors' names, and loses memory each time.
      hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
      return Status();
    case MachineSource::Kind::xml_file:
      TUTTI_RETURN_IF_ERROR(check_xml(source.text));
      if (hwloc_topology_set_xml(topology, source.text.c_str()) == 0) return Status();
      return Status(Code::invalid_argument,
                    fmt::format("topology file {}: hwloc cannot read it as XML ({})", source.text, strerror(errno)));
    case MachineSource::Kind::synthetic:
      if (hwloc_topology_set_synthetic(topology, source.text.c_str()) == 0) return Status();
      return Status(Code::invalid_argument,
                    fmt::format("synthetic topology '{}': hwloc does not understand it; one that it does is "
                                "'package:2 numa:1 l3:2 core:4 pu:2'",
                                source.text));
  }
  return Status();
}

}  // namespace

Result<Topology> load_topology(const MachineSource& source) {
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
                                                    source.text, strerror(errno)));
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
