#include "topology/sysfs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "src/base/first_line.h"

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;

// Bonds of VLANs of bonds: no deeper.
constexpr int kMostLayers = 8;
constexpr double kBitsPerByte = 8;

class Sysfs {
 public:
  explicit Sysfs(fs::path root) : root_(std::move(root)) {}

  // The file's first line; "" where there is none.
  std::string line(const fs::path& file) const { return first_line(root_ / file); }
  double number(const fs::path& file) const { return std::strtod(line(file).c_str(), nullptr); }
  // Names in the folder, sorted; none where there is no such folder.
  std::vector<std::string> names(const fs::path& folder) const {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator entry(root_ / folder, error), end; !error && entry != end; entry.increment(error))
      found.push_back(entry->path().filename());
    std::ranges::sort(found);
    return found;
  }

 private:
  fs::path root_;
};

std::vector<RdmaPort> ports_of(const Sysfs& sysfs, const std::string& rdma) {
  const fs::path folder = fs::path("class/infiniband") / rdma / "ports";
  std::vector<RdmaPort> ports;
  for (const std::string& name : sysfs.names(folder)) {
    RdmaPort port;
    port.number = std::atoi(name.c_str());
    const std::string state = sysfs.line(folder / name / "state");  // "4: ACTIVE"
    port.state = state.substr(std::min(state.size(), state.find(' ') + 1));
    port.link_layer = sysfs.line(folder / name / "link_layer");
    port.gigabits = sysfs.number(folder / name / "rate");  // "100 Gb/sec (4X EDR)"
    ports.push_back(port);
  }
  return ports;
}

// 0 where the kernel does not know: it answers -1 for a link that is down, and nothing for most software devices.
double net_gigabits(const Sysfs& sysfs, const std::string& net) {
  constexpr double kMegabitsPerGigabit = 1000;
  return std::max(0.0, sysfs.number(fs::path("class/net") / net / "speed") / kMegabitsPerGigabit);
}

// The fastest of its ports; of a device on Ethernet, its net device knows better.
void add_ports(const Sysfs& sysfs, Nic& nic) {
  nic.ports = nic.rdma.empty() ? std::vector<RdmaPort>() : ports_of(sysfs, nic.rdma);
  double gigabits = 0;
  for (const std::string& net : nic.nets) gigabits = std::max(gigabits, net_gigabits(sysfs, net));
  if (gigabits == 0)
    for (const RdmaPort& port : nic.ports) gigabits = std::max(gigabits, port.gigabits);
  nic.port_gbytes = gigabits / kBitsPerByte;
  const bool is_down = !nic.ports.empty() && std::ranges::none_of(nic.ports, [](const RdmaPort& port) {
    return port.state.empty() || port.state == "ACTIVE";
  });
  if (is_down && nic.why_no_rdma.empty())
    nic.why_no_rdma = fmt::format("its port {} is {}", nic.ports.front().number, nic.ports.front().state);
}

// The devices of the machine that carry a net device: itself, or those below a bond, a VLAN, a bridge.
std::vector<const Nic*> carriers(const Sysfs& sysfs, const Machine& machine, const std::string& net, int layers) {
  if (const int at = machine.find_nic(net); at >= 0) return {&machine.nics[at]};
  std::vector<const Nic*> found;
  if (layers == 0) return found;
  constexpr std::string_view kLower = "lower_";
  for (const std::string& name : sysfs.names(fs::path("class/net") / net))
    if (name.starts_with(kLower))
      for (const Nic* nic : carriers(sysfs, machine, name.substr(kLower.size()), layers - 1)) found.push_back(nic);
  return found;
}

// One carrier lends its place whole; several, what they have in common.
Place common_place(const std::vector<const Nic*>& nics) {
  Place place = nics.front()->place;
  for (const Nic* nic : nics) {
    if (nic->place.package != place.package) place.package = -1;
    if (nic->place.numa != place.numa) place.numa = -1;
    place.is_guessed = place.is_guessed || nic->place.is_guessed;
  }
  if (nics.size() == 1) return place;
  place.bridges.clear();
  place.cpus.clear();
  for (const Nic* nic : nics) place.cpus.insert(place.cpus.end(), nic->place.cpus.begin(), nic->place.cpus.end());
  std::ranges::sort(place.cpus);
  place.cpus.erase(std::unique(place.cpus.begin(), place.cpus.end()), place.cpus.end());
  return place;
}

// rxe says which net device it is over; others show it at their first GID.
std::string net_below(const Sysfs& sysfs, const std::string& rdma) {
  const fs::path folder = fs::path("class/infiniband") / rdma;
  const std::string parent = sysfs.line(folder / "parent");
  return parent.empty() ? sysfs.line(folder / "ports/1/gid_attrs/ndevs/0") : parent;
}

Nic software_device(const Sysfs& sysfs, const Machine& machine, const std::string& rdma) {
  Nic nic;
  nic.rdma = nic.card = rdma;
  const std::string net = net_below(sysfs, rdma);
  if (!net.empty()) nic.nets.push_back(net);
  const auto below = net.empty() ? std::vector<const Nic*>() : carriers(sysfs, machine, net, kMostLayers);
  if (below.empty()) {
    nic.placed_by = net.empty() ? "nothing: it shows no net device" : "nothing: " + net + " hangs on no device";
    nic.place.is_guessed = true;
    return nic;
  }
  nic.place = common_place(below);
  if (below.size() == 1) nic.card = below.front()->card;
  for (const Nic* lender : below) {
    nic.placed_by += nic.placed_by.empty() ? "" : " and ";
    nic.placed_by += lender->nets.empty() ? lender->name() : lender->nets.front();
  }
  if (below.size() > 1 || std::ranges::count(below.front()->nets, net) == 0) nic.placed_by += " below " + net;
  return nic;
}

}  // namespace

void add_facts_of_sysfs(Machine& machine, const std::string& root) {
  const Sysfs sysfs(root);
  std::vector<Nic> software;
  for (const std::string& rdma : sysfs.names("class/infiniband"))
    if (std::ranges::none_of(machine.nics, [&](const Nic& nic) { return nic.rdma == rdma; }))
      software.push_back(software_device(sysfs, machine, rdma));
  machine.nics.insert(machine.nics.end(), software.begin(), software.end());
  for (Nic& nic : machine.nics) add_ports(sysfs, nic);
}

}  // namespace tutti::internal
