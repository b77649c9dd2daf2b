#include <nlohmann/json.hpp>

#include "topology/show.h"

namespace tutti::internal {
namespace {

using nlohmann::json;

json known(double value) { return value > 0 ? json(value) : json(nullptr); }
json known(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

json index_json(int index) { return index < 0 ? json(nullptr) : json(index); }

// An index as the number that people know the thing by.
template <class Part>
json os_index(const std::vector<Part>& parts, int index) {
  return index < 0 ? json(nullptr) : index_json(parts[static_cast<size_t>(index)].os_index);
}

// Files, hosts and devices may have any bytes as names; JSON may not.
json valid(const json& value) { return json::parse(value.dump(-1, ' ', false, json::error_handler_t::replace)); }

json place_json(const Machine& machine, const Place& place) {
  return {{"package", os_index(machine.packages, place.package)},
          {"numa_node", os_index(machine.numa_nodes, place.numa)},
          {"cpus", to_string(place.cpus)},
          {"bridges", place.bridges},
          {"guessed", place.is_guessed}};
}

json nic_json(const Machine& machine, const Nic& nic) {
  json ports = json::array();
  for (const RdmaPort& port : nic.ports)
    ports.push_back({{"number", port.number},
                     {"state", known(port.state)},
                     {"link_layer", known(port.link_layer)},
                     {"gigabits", known(port.gigabits)}});
  return {{"name", nic.name()},
          {"pci", known(nic.pci)},
          {"model", known(nic.model)},
          {"nets", nic.nets},
          {"rdma", known(nic.rdma)},
          {"ports", ports},
          {"pci_gbytes", known(nic.pci_gbytes)},
          {"port_gbytes", known(nic.port_gbytes)},
          {"card", nic.card},
          {"place", place_json(machine, nic.place)},
          {"placed_by", known(nic.placed_by)},
          {"why_no_rdma", known(nic.why_no_rdma)},
          {"why_no_use", known(nic.why_no_use)}};
}

}  // namespace

json to_json(const Machine& machine) {
  json result = summary_json(machine);
  result["packages"] = json::array();
  for (const Package& package : machine.packages)
    result["packages"].push_back({{"os_index", index_json(package.os_index)},
                                  {"model", known(package.model)},
                                  {"cpus", to_string(package.cpus)}});
  result["numa_nodes"] = json::array();
  for (const NumaNode& node : machine.numa_nodes)
    result["numa_nodes"].push_back({{"os_index", node.os_index},
                                    {"memory_bytes", node.memory_bytes > 0 ? json(node.memory_bytes) : json(nullptr)},
                                    {"kind", to_string(node.kind)},
                                    {"kind_is_guessed", node.kind_is_guessed},
                                    {"takes_host_memory", node.takes_host_memory()},
                                    {"cpus", to_string(node.cpus)}});
  result["l3_domains"] = json::array();
  for (const L3Domain& l3 : machine.l3_domains)
    result["l3_domains"].push_back({{"cache_bytes", l3.cache_bytes}, {"cpus", to_string(l3.cpus)}});
  result["cores"] = json::array();
  for (const Core& core : machine.cores)
    result["cores"].push_back({{"os_index", index_json(core.os_index)},
                               {"cpus", to_string(core.cpus)},
                               {"package", os_index(machine.packages, core.package)},
                               {"numa_node", os_index(machine.numa_nodes, core.numa)},
                               {"l3_domain", index_json(core.l3)}});
  result["nics"] = json::array();
  for (const Nic& nic : machine.nics) result["nics"].push_back(nic_json(machine, nic));
  result["gpus"] = json::array();
  for (const Gpu& gpu : machine.gpus)
    result["gpus"].push_back({{"name", gpu.name()},
                              {"pci", gpu.pci},
                              {"model", known(gpu.model)},
                              {"names", gpu.names},
                              {"place", place_json(machine, gpu.place)}});
  result["displays"] = machine.displays;
  return valid(result);
}

json summary_json(const Machine& machine) {
  json nics = json::array(), gpus = json::array();
  for (const Nic& nic : machine.nics)
    if (nic.why_no_use.empty()) nics.push_back(nic.name());
  for (const Gpu& gpu : machine.gpus) gpus.push_back(gpu.name());
  return valid({{"host", known(machine.host)},
                {"source", machine.source},
                {"allowed", to_string(machine.allowed)},
                {"package_count", machine.packages.size()},
                {"numa_node_count", machine.numa_nodes.size()},
                {"l3_domain_count", machine.l3_domains.size()},
                {"core_count", machine.cores.size()},
                {"model", machine.packages.empty() ? json(nullptr) : known(machine.packages.front().model)},
                {"nic_names", nics},
                {"gpu_names", gpus}});
}

}  // namespace tutti::internal
