// What tutti sets of UCX, by the devices that a machine has.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "transport/ucx/configuration.h"

namespace tutti::internal::ucx {
namespace {

// A folder of devices as in sysfs, with a network interface: "name" is hardware, "name!" emulated.
class Devices {
 public:
  explicit Devices(const std::vector<std::string>& names) {
    std::string name = std::filesystem::temp_directory_path() / "tutti_devices_XXXXXX";
    folder_ = mkdtemp(name.data());
    std::filesystem::create_directories(folder_ / "net" / "eth0");
    for (const std::string& device : names) {
      const bool is_emulated = device.back() == '!';
      const auto path = folder_ / "infiniband" / device.substr(0, device.size() - (is_emulated ? 1 : 0));
      std::filesystem::create_directories(is_emulated ? path : path / "device");
      std::filesystem::create_directories(path / "ports" / "1");
      if (is_emulated) std::ofstream(path / "parent") << "d0\n";
    }
  }
  ~Devices() { std::filesystem::remove_all(folder_); }
  void remove_interface() { std::filesystem::remove(folder_ / "net" / "eth0"); }
  // What UCX_IB_GID_INDEX would have to be; "" where nothing is set.
  std::string gid_setting(const Version& version) const { return setting("UCX_IB_GID_INDEX", version, {}); }
  std::string tcp_segment() const { return setting("UCX_TCP_RX_SEG_SIZE", {1, 13}, {}); }
  // Likewise UCX_NET_DEVICES, for IP by these interfaces alone.
  std::string net_devices(const std::vector<std::string>& interfaces) const {
    return setting("UCX_NET_DEVICES", {1, 13}, interfaces);
  }

 private:
  std::string setting(const std::string& variable, const Version& version,
                      const std::vector<std::string>& interfaces) const {
    for (const Needed& needed : needed_settings(version, folder_, interfaces))
      if (needed.variable == variable) return needed.value;
    return "";
  }

  std::filesystem::path folder_;
};

TEST(UcxSettings, ChosenInterfacesAreForIpAlone) {
  EXPECT_EQ(Devices({"rxe0!", "mlx5_0"}).net_devices({"eth0", "ens4"}), "eth0,ens4,mlx5_0:1,rxe0:1");
  EXPECT_EQ(Devices({}).net_devices({"eth0"}), "eth0");
  EXPECT_EQ(Devices({"mlx5_0"}).net_devices({}), "") << "UCX takes all by itself";
  Devices alone({"mlx5_0"});
  EXPECT_NE(alone.tcp_segment(), "");
  alone.remove_interface();
  EXPECT_EQ(alone.net_devices({"eth0"}), "") << "UCX would warn of it";
  EXPECT_EQ(alone.tcp_segment(), "") << "likewise";
}

TEST(UcxSettings, TakeTheFirstAddressOfSoftRoceWhereUcxIsOld) {
  EXPECT_EQ(Devices({"rxe0!", "rxe1!"}).gid_setting({1, 13}), "0");
  EXPECT_EQ(Devices({"rxe0!"}).gid_setting({1, 22}), "") << "it chooses well itself";
  EXPECT_EQ(Devices({"rxe0!", "mlx5_0"}).gid_setting({1, 13}), "") << "hardware's addresses are other ones";
  EXPECT_EQ(Devices({}).gid_setting({1, 13}), "");
}

}  // namespace
}  // namespace tutti::internal::ucx
