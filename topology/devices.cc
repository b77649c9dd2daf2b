// What hangs on PCI, as hwloc shows it.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "topology/hwloc_topology.h"

namespace tutti::internal {
namespace {

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

constexpr unsigned kClassMask = 0xff00;
constexpr unsigned kNetworkClass = 0x0200;
constexpr unsigned kDisplayClass = 0x0300;

std::string address_of(const PciAttributes& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// Displays of management controllers and of virtual machines: they show a screen and compute nothing.
bool is_mere_display(const PciAttributes& pci) {
  constexpr std::array kVendors{
      0x1a03,  // ASPEED
      0x102b,  // Matrox
      0x1013,  // Cirrus
      0x1234,  // QEMU
      0x1b36,  // QXL
      0x1af4,  // virtio
      0x15ad,  // VMware
      0x80ee,  // VirtualBox
      0x1414,  // Hyper-V
      0x18ca,  // XGI
  };
  constexpr std::array kAtiServerChips{0x4752, 0x4758, 0x5159, 0x515e, 0x5969};  // Rage XL, RV100, ES1000
  if (std::ranges::count(kVendors, pci.vendor_id) > 0) return true;
  return pci.vendor_id == 0x1002 && std::ranges::count(kAtiServerChips, pci.device_id) > 0;
}

// hwloc's OS devices below an object, and below no other PCI device.
void for_each_os_device(hwloc_obj_t object, const std::function<void(hwloc_obj_t)>& each) {
  for (hwloc_obj_t child = object->io_first_child; child; child = child->next_sibling) {
    if (child->type != HWLOC_OBJ_OS_DEVICE) continue;
    each(child);
    for_each_os_device(child, each);
  }
}

std::vector<std::string> bridges_above(hwloc_obj_t device) {
  std::vector<std::string> bridges;
  for (hwloc_obj_t up = device->parent; up && up->type == HWLOC_OBJ_BRIDGE; up = up->parent) {
    const auto& bridge = up->attr->bridge;
    bridges.push_back(
        bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI
            ? address_of(bridge.upstream.pci)
            : fmt::format("{:04x}:{:02x}", bridge.downstream.pci.domain, bridge.downstream.pci.secondary_bus));
  }
  std::ranges::reverse(bridges);
  return bridges;
}

Place place_of(hwloc_topology_t topology, hwloc_obj_t device) {
  Place place;
  const hwloc_obj_t parent = hwloc_get_non_io_ancestor_obj(topology, device);
  if (parent) place.cpus = list_of(parent->cpuset);
  place.bridges = bridges_above(device);
  return place;
}

// What the names of a device's OS devices say.
struct Names {
  std::vector<std::string> nets;
  std::vector<std::string> rdma;
  std::vector<std::string> compute;
  std::string gpu_model;
};

Names names_below(hwloc_obj_t device) {
  Names names;
  for_each_os_device(device, [&](hwloc_obj_t os) {
    const std::string name = os->name ? os->name : "";
    if (os->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) names.nets.push_back(name);
    if (os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) names.rdma.push_back(name);
    // By name, for the type of an nvml device has changed, and a management controller's card0 is of GPU type too.
    if (starts_with_any(name, {"cuda", "nvml", "rsmi", "opencl", "ze"})) names.compute.push_back(name);
    if (names.gpu_model.empty()) names.gpu_model = info_of(os, "GPUModel");
  });
  return names;
}

// Why verbs cannot make reliable connections on an RDMA device of this name.
std::string why_no_connections(const std::string& rdma) {
  if (rdma.starts_with("usnic_")) return "usNIC has datagrams only, no reliable connections";
  return "";
}

void add_nic(Machine& machine, Nic nic, const std::vector<std::string>& rdma) {
  if (rdma.empty()) {
    nic.why_no_rdma = "it has no RDMA device";
    if (nic.nets.empty())
      nic.why_no_use =
          "it shows no net device and no RDMA device: its driver is not loaded, it is a virtual function that is "
          "handed to a guest, or its devices are in another network namespace";
    machine.nics.push_back(nic);
  }
  for (const std::string& name : rdma) {
    nic.rdma = name;
    nic.why_no_rdma = why_no_connections(name);
    machine.nics.push_back(nic);
  }
}

std::string model_of(hwloc_obj_t device) {
  const std::string vendor = info_of(device, "PCIVendor"), model = info_of(device, "PCIDevice");
  return vendor.empty() || model.empty() ? vendor + model : vendor + " " + model;
}

void read_pci_device(hwloc_topology_t topology, hwloc_obj_t device, Machine& machine) {
  const PciAttributes& pci = device->attr->pcidev;
  const Names names = names_below(device);
  const unsigned device_class = pci.class_id & kClassMask;
  // Some InfiniBand cards are of class 0c06, not 02xx.
  if (device_class == kNetworkClass || !names.nets.empty() || !names.rdma.empty()) {
    Nic nic;
    nic.pci = address_of(pci);
    nic.card = nic.pci.substr(0, nic.pci.rfind('.'));
    nic.model = model_of(device);
    nic.nets = names.nets;
    nic.pci_gbytes = static_cast<double>(pci.linkspeed);
    nic.place = place_of(topology, device);
    add_nic(machine, nic, names.rdma);
    return;
  }
  if (device_class == kDisplayClass && names.compute.empty() && is_mere_display(pci)) {
    machine.displays.push_back(address_of(pci));
    return;
  }
  if (device_class != kDisplayClass && names.compute.empty()) return;
  machine.gpus.push_back({address_of(pci), names.gpu_model.empty() ? model_of(device) : names.gpu_model, names.compute,
                          place_of(topology, device)});
}

// Net devices of a machine whose network does not hang on PCI.
void read_other_nets(hwloc_topology_t topology, Machine& machine) {
  for (hwloc_obj_t os = nullptr; (os = hwloc_get_next_osdev(topology, os)) != nullptr;) {
    const auto type = os->attr->osdev.type;
    if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
    if (hwloc_get_non_io_ancestor_obj(topology, os) != os->parent) continue;
    Nic nic;
    nic.place = place_of(topology, os);
    const std::string name = os->name ? os->name : "";
    nic.card = name;
    if (type == HWLOC_OBJ_OSDEV_NETWORK) nic.nets.push_back(name);
    add_nic(machine, nic, type == HWLOC_OBJ_OSDEV_OPENFABRICS ? std::vector{name} : std::vector<std::string>());
  }
}

}  // namespace

void read_devices(hwloc_topology_t topology, Machine& machine) {
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_pcidev(topology, device)) != nullptr;)
    read_pci_device(topology, device, machine);
  read_other_nets(topology, machine);
}

}  // namespace tutti::internal
