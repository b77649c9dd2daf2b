#include "buffers.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace tutti::perf {

Region::Region(tutti_group* group, Memory memory, size_t bytes) : group_(group), memory_(memory) {
  if (bytes == 0) return;
  if (memory == Memory::window) {
    require(tutti_alloc(group, bytes, &data_), "tutti_alloc of " + std::to_string(bytes) + " bytes");
  } else if ((data_ = std::malloc(bytes)) == nullptr) {
    throw std::runtime_error("malloc of " + std::to_string(bytes) + " bytes failed");
  }
}

Region::~Region() {
  // After an error of the world the library may refuse; the memory then goes with the process.
  if (memory_ == Memory::malloc) {
    std::free(data_);
  } else if (data_ != nullptr) {
    static_cast<void>(tutti_free(group_, data_));
  }
}

double available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  double kibibytes = 0;
  while (file >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return std::numeric_limits<double>::max();
}

std::string missing_memory(tutti_group* group, double own_bytes) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  // Of each rank: its host, its need, and what it sees available.
  struct Claim {
    double host, bytes, available;
  };
  const Claim own = {static_cast<double>(std::hash<std::string_view>()(host.data()) >> 12), own_bytes,
                     available_bytes()};
  std::vector<Claim> claims(static_cast<size_t>(tutti_group_size(group)));
  require(tutti_all_gather(group, &own, claims.data(), sizeof(Claim) / sizeof(double), TUTTI_FLOAT64, nullptr),
          "all_gather");
  for (const Claim& claim : claims) {
    double needed = 0;
    for (const Claim& other : claims) needed += other.host == claim.host ? other.bytes : 0;
    if (needed <= claim.available) continue;
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "the ranks of one node need %.1f GiB for the largest size, and it has %.1f GiB available: lower "
                  "--max-bytes",
                  needed / (1 << 30), claim.available / (1 << 30));
    return text.data();
  }
  return "";
}

}  // namespace tutti::perf
