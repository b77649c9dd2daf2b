// Which processors this process may use, and which of them each rank of a node is bound to. Read once, by the launcher,
// before it starts ranks. Nothing here ever leaves the set that the process was given (by its cgroup or by taskset).
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace tutti::internal {

// A set of processors (PUs), by the operating system's numbers, ascending.
using CpuList = std::vector<int>;

// The allowed processors, grouped by the core that they are threads of, in the machine's order: neighbours share most.
// No list is empty. Errors: unsupported (the machine cannot be read, or hwloc was told to read another one).
Result<std::vector<CpuList>> allowed_cores();

// What rank i of `rank_count` is bound to, for each i: a core of its own while there are enough, then around again.
// Ranks that share a core share its threads out; with more ranks than threads several ranks sit on one.
std::vector<CpuList> bindings(const std::vector<CpuList>& cores, int rank_count);

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

// "0-3,8": for messages.
std::string to_string(const CpuList& cpus);

}  // namespace tutti::internal
