// What UCX finds on this machine, as far as tests need it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace tutti::internal::conformance {

constexpr const char* kInterfaces = "/sys/class/net";
constexpr const char* kRdmaDevices = "/sys/class/infiniband";

// Why UCX cannot use what it looks for in this folder of sysfs; nothing: it can.
inline std::optional<std::string> why_no_device(const char* folder) {
  std::error_code error;
  const std::filesystem::directory_iterator none;
  if (std::filesystem::directory_iterator(folder, error) != none) return std::nullopt;
  return std::string("UCX finds no device: ") + folder + " is empty, or sysfs is not mounted there";
}

}  // namespace tutti::internal::conformance
