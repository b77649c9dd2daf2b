// A machine as the library sees it: processors, memory and devices, as plain data. It comes from hwloc (this host, a
// recorded XML file, or a synthetic description) and, for this host, from sysfs. Constant once it is made: any thread
// may read it. What is not known is absent or marked, never invented.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "topology/cpu_list.h"

namespace tutti::internal {

struct Package {
  int os_index = 0;   // -1: unknown
  std::string model;  // "" where it is unknown
  CpuList cpus;
};

enum class MemoryKind {
  dram,
  high_bandwidth,  // MCDRAM, HBM: fast and small
  gpu,             // a GPU's own memory that the kernel shows as a node
  other,           // further away than DRAM, or of a kind that is not known
};

struct NumaNode {
  int os_index = 0;
  uint64_t memory_bytes = 0;  // 0: unknown, or none
  MemoryKind kind = MemoryKind::dram;
  bool kind_is_guessed = false;
  CpuList cpus;  // those it is near to; of a node without processors, those of the part of the machine it hangs in

  bool takes_host_memory() const { return memory_bytes > 0 && kind != MemoryKind::gpu; }
};

// Cores that share a last-level cache.
struct L3Domain {
  uint64_t cache_bytes = 0;
  CpuList cpus;
};

// The numbers are indices into the machine's lists; -1 where there is none.
struct Core {
  int os_index = 0;  // -1: unknown
  CpuList cpus;
  int package = -1;
  int numa = -1;  // the DRAM node next to it
  int l3 = -1;
};

// Where a device hangs.
struct Place {
  CpuList cpus;                      // the processors near it
  int package = -1;                  // index; -1: of no package alone, or unknown
  int numa = -1;                     // index of a DRAM node; -1 likewise
  std::vector<std::string> bridges;  // from the host bridge ("0000:c0") down to the one above the device; of a device
                                     // that is not on PCI, none
  bool is_guessed = false;           // from what lies near it, since the machine does not say
};

struct RdmaPort {
  int number = 1;
  std::string state;       // "ACTIVE", "DOWN"; "" where it is unknown
  std::string link_layer;  // "InfiniBand", "Ethernet"; "" likewise
  double gigabits = 0;     // per second; 0 likewise
};

// A network device: one function of a card, or a software device.
struct Nic {
  std::string pci;                // "0000:3b:00.0"; "" for a device that is not on PCI
  std::string model;              // "" where it is unknown
  std::vector<std::string> nets;  // its net devices
  std::string rdma;               // its RDMA device, "" for none
  std::vector<RdmaPort> ports;    // of the RDMA device, where they are known
  double pci_gbytes = 0;          // the PCI link's GB/s; 0: unknown
  double port_gbytes = 0;         // the network's GB/s; 0: unknown
  std::string card;               // the same for all functions of one card ("0000:3b:00")
  Place place;
  std::string placed_by;    // of a software device: what lent it its place ("eth0 below bond0")
  std::string why_no_rdma;  // "" where RDMA (reliable connections by verbs) is to be had
  std::string why_no_use;   // "" where it has any device that a program can use

  std::string name() const;       // the shortest by which people know it: RDMA, else net, else PCI
  std::string all_names() const;  // of its devices: "mlx4_0 (ib0)"
  // What it can move, GB/s: the narrower of its PCI link and its port; 0 where neither is known.
  double gbytes() const;
};

struct Gpu {
  std::string pci;
  std::string model;
  std::vector<std::string> names;  // "cuda0", "nvml0": as the libraries that know it say
  Place place;

  std::string name() const { return names.empty() ? pci : names.front(); }
};

// Where a machine is read from.
struct MachineSource {
  enum class Kind { this_host, xml_file, synthetic };
  Kind kind = Kind::this_host;
  std::string text;  // the file's path, or the description ("package:2 core:4 pu:1")
};

struct Machine {
  std::string host;  // its name
  // "this host", "file machine.xml", "synthetic package:2 core:4"; where a variable of hwloc's makes it show another
  // machine than this, that: "HWLOC_SYNTHETIC=core:4".
  std::string source;
  bool is_this_host = false;
  CpuList allowed;  // what this process may use (its cgroup and its affinity); of another machine, what that allows
  std::vector<Package> packages;
  std::vector<NumaNode> numa_nodes;
  std::vector<L3Domain> l3_domains;
  std::vector<Core> cores;
  std::vector<Nic> nics;
  std::vector<Gpu> gpus;
  std::vector<std::string> displays;  // PCI addresses of displays that are no GPUs (of a BMC, of a virtual machine)

  // Errors: invalid_argument (no such file; a file that is none of hwloc's, is cut short, or is of a version that this
  // hwloc cannot read; a description that is none), unsupported (hwloc cannot read this host).
  static Result<Machine> read(const MachineSource& source);

  // This host, read once per process by whoever asks first.
  static const Result<Machine>& this_host();

  // What TUTTI_TOPOLOGY_FILE says that this host is; what may be used is what the calling thread may. Errors: those of
  // read, and invalid_argument where the thread may use processors that the file does not have.
  static Result<Machine> this_host_by_file(const std::string& path);

  // Indices; -1 where there is none.
  int core_of(int cpu) const;
  int package_around(const CpuList& cpus) const;  // the package that has all of them
  CpuList all_cpus() const;
  // The node whose memory a thread on `cpu` takes: the nearest DRAM; of a processor without a node of its own, the
  // first that takes any.
  int memory_node_of(int cpu) const;
  int find_nic(const std::string& name) const;  // by RDMA, net or PCI name
  int find_gpu(const std::string& name) const;
};

// The indices of the cores that these processors are of, ascending.
std::vector<int> cores_of(const Machine& machine, const CpuList& cpus);

const char* to_string(MemoryKind kind);

}  // namespace tutti::internal
