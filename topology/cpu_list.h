// Sets of processors (PUs), by the operating system's numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::internal {

// Ascending.
using CpuList = std::vector<int>;

// "0-3,8": for people.
std::string to_string(const CpuList& cpus);
// The other way, as text from outside is read: ascending, at most kMostCpus of them. Nothing where it is no such text.
inline constexpr int kMostCpus = 65536;
std::optional<CpuList> parse_cpu_list(std::string_view text);

// The processors that the calling thread may run on now; empty where the kernel does not say.
CpuList own_cpus();

bool contains(const CpuList& outer, const CpuList& inner);
bool contains(const CpuList& cpus, int cpu);
CpuList intersection(const CpuList& one, const CpuList& other);

}  // namespace tutti::internal
