// Which processors each rank of a node is bound to. Decided once, by the launcher, before it starts ranks. Nothing here
// ever leaves the set that the process was given (by its cgroup or by taskset).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "topology/machine.h"

namespace tutti::internal {

enum class BindUnit { core, l3, numa, package };
std::optional<BindUnit> parse_bind_unit(std::string_view text);

// What rank i of `rank_count` is bound to, for each i. Errors: unsupported (no processor is allowed).
Result<std::vector<CpuList>> bindings(const Machine& machine, BindUnit unit, int rank_count);
// The machine to bind by in earnest: this host, or what `topology_file` (TUTTI_TOPOLOGY_FILE) says that it is, "" for
// none. Errors: unsupported (hwloc cannot read it, or was told to read another machine), invalid_argument (the file).
Result<Machine> machine_to_bind_on(const std::string& topology_file);

// Where more ranks are bound than there are cores: "3 ranks share 2 cores (0-1)", by the cores' indices; "": nowhere.
std::string crowding(const Machine& machine, const std::vector<CpuList>& places);

// Its parts.

// The allowed processors, grouped by unit, in the machine's order: neighbours share most. No list is empty. Where the
// machine shows no such unit, the next larger one that it shows, and at last the whole machine. Errors: unsupported (no
// processor is allowed).
Result<std::vector<CpuList>> allowed_units(const Machine& machine, BindUnit unit);

// With cores as units: a core of its own while there are enough,
// then around again. Ranks that share a core share its threads out; with more ranks than threads several ranks sit on
// one.
std::vector<CpuList> bind_to_cores(const std::vector<CpuList>& cores, int rank_count);

// With larger units: each rank may use a whole unit, neighbours the same or the next.
std::vector<CpuList> bind_to_units(const std::vector<CpuList>& units, int rank_count);

// A CpuList as the kernel takes it.
class CpuMask {
 public:
  explicit CpuMask(const CpuList& cpus);
  // Binds the calling thread, and with it what it starts later. 0 or errno. Async-signal-safe: it may run between fork
  // and exec.
  int bind_this_thread() const noexcept;

 private:
  std::vector<unsigned long> words_;
};

}  // namespace tutti::internal
