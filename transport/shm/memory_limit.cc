#include "transport/shm/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace tutti::internal::shm {
namespace {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

size_t number_in(const std::string& path) {
  std::ifstream file(path);
  size_t value = 0;
  return file >> value ? value : kUnlimited;  // "max" in a cgroup means no limit
}

size_t machine_available() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  size_t kib = 0;
  std::string rest;
  while (file >> name >> kib && std::getline(file, rest))
    if (name == "MemAvailable:") return kib * 1024;
  return kUnlimited;
}

// The page cache of a cgroup, which counts as used but is given back on demand.
size_t page_cache_in(const std::string& path) {
  std::ifstream file(path);
  std::string name;
  size_t value = 0;
  size_t sum = 0;
  while (file >> name >> value)
    if (name == "active_file" || name == "inactive_file") sum += value;
  return sum;
}

// cgroup v2: the tightest limit of this process's group and its ancestors, as far as they are visible.
size_t cgroup_available() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("0::")) {
  }
  if (!line.starts_with("0::")) return kUnlimited;
  size_t available = kUnlimited;
  for (std::string path = line.substr(3); !path.empty(); path.resize(path.rfind('/'))) {
    const std::string folder = "/sys/fs/cgroup" + path + "/";
    const size_t limit = number_in(folder + "memory.max");
    const size_t current = number_in(folder + "memory.current");
    if (limit == kUnlimited || current == kUnlimited) continue;
    const size_t used = current - std::min(current, page_cache_in(folder + "memory.stat"));
    available = std::min(available, limit > used ? limit - used : 0);
  }
  return available;
}

}  // namespace

size_t available_memory() { return std::min(machine_available(), cgroup_available()); }

}  // namespace tutti::internal::shm
