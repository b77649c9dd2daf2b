#include "transport/ucx/configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "src/base/config.h"
#include "src/base/log.h"
#include "transport/ucx/tuning.h"

namespace tutti::internal::ucx {
namespace {

constexpr const char* kClasses = "/sys/class";

std::string rdma_devices(const std::string& classes) { return classes + "/infiniband"; }

// An RDMA device that is software on a network interface names that interface, and has no hardware behind it.
bool is_emulated(const std::filesystem::path& device) {
  std::error_code error;
  return std::filesystem::exists(device / "parent", error) && !std::filesystem::exists(device / "device", error);
}

// Where there is hardware too, its addresses are what matters.
struct Devices {
  bool any = false;
  bool hardware = false;
};

Devices devices_in(const std::string& folder) {
  std::error_code error;
  Devices devices;
  for (const auto& device : std::filesystem::directory_iterator(folder, error)) {
    devices.any = true;
    devices.hardware |= !is_emulated(device.path());
  }
  return devices;
}

bool all_are_emulated(const std::string& folder) {
  const Devices devices = devices_in(folder);
  return devices.any && !devices.hardware;
}

// Without one UCX has no TCP, and warns of settings for it.
bool has_interface(const std::string& classes) {
  std::error_code error;
  return std::filesystem::directory_iterator(classes + "/net", error) != std::filesystem::directory_iterator();
}

// "mlx5_0:1", as UCX names them.
std::vector<std::string> ports_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> ports;
  for (const auto& device : std::filesystem::directory_iterator(folder, error))
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", error))
      ports.push_back(fmt::format("{}:{}", device.path().filename().string(), port.path().filename().string()));
  std::ranges::sort(ports);
  return ports;
}

// UCX 1.13 loses the first packets between soft-RoCE devices at the address that it takes by itself; 1.22 does not.
bool loses_packets_on_soft_roce(const Version& version) {
  return std::tuple(version.major, version.minor) < std::tuple(1U, 22U);
}

}  // namespace

std::vector<Needed> needed_settings(const Version& version, const std::string& classes,
                                    const std::vector<std::string>& interfaces) {
  std::vector<Needed> settings;
  // Over shared memory nothing but asking tells that a peer is dead.
  settings.push_back({"UCX_KEEPALIVE_INTERVAL", "KEEPALIVE_INTERVAL", "1s"});
  if (loses_packets_on_soft_roce(version) && all_are_emulated(rdma_devices(classes)))
    settings.push_back({"UCX_IB_GID_INDEX", "GID_INDEX", "0"});
  if (!has_interface(classes)) return settings;
  settings.push_back({"UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", kTcpSegment});
  if (!interfaces.empty()) {
    std::vector<std::string> devices = ports_in(rdma_devices(classes));
    devices.insert(devices.begin(), interfaces.begin(), interfaces.end());
    settings.push_back({"UCX_NET_DEVICES", "NET_DEVICES", fmt::format("{}", fmt::join(devices, ","))});
  }
  return settings;
}

bool has_rdma_hardware() { return devices_in(rdma_devices(kClasses)).hardware; }

Settings without_rdma() {
  if (is_in_environment("UCX_TLS")) return {};
  return {{"TLS", "^ib"}};
}

Configuration::~Configuration() {
  if (config_ != nullptr) library().ucp_config_release(config_);
}

Result<Configuration> Configuration::read(const std::vector<std::string>& interfaces, const Settings& forced) {
  ucp_config_t* config = nullptr;
  if (const ucs_status_t status = library().ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return Status(Code::invalid_argument, fmt::format("UCX does not take its settings: {}", text_of(status)));
  Configuration made(config);
  Version version;
  unsigned release = 0;
  library().ucp_get_version(&version.major, &version.minor, &release);
  for (const auto& [variable, name, value] : needed_settings(version, kClasses, interfaces)) {
    if (is_in_environment(variable)) continue;
    log_debug("UCX {}.{}.{}: {} is set to {}", version.major, version.minor, release, name, value);
    TUTTI_RETURN_IF_ERROR(made.modify(name, value));
  }
  for (const auto& [name, value] : forced) TUTTI_RETURN_IF_ERROR(made.modify(name, value));
  return made;
}

Status Configuration::modify(const std::string& name, const std::string& value) {
  const ucs_status_t status = library().ucp_config_modify(config_, name.c_str(), value.c_str());
  if (status == UCS_OK) return {};
  return Status(Code::unsupported, fmt::format("UCX does not take {}={}: {}", name, value, text_of(status)));
}

}  // namespace tutti::internal::ucx
