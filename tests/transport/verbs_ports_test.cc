// Which ports are used, and why not the others. What needs a device skips where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "src/base/first_line.h"
#include "transport/verbs/device_filter.h"
#include "transport/verbs/gid_table.h"
#include "transport/verbs/port.h"
#include "transport/verbs/probe.h"

namespace tutti::internal::verbs {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<std::string> kDevices = {"mlx5_0", "mlx5_1", "mlx5_10", "rxe0"};

// The fake devices, each with two ports, that the setting leaves: "mlx5_0:1 mlx5_0:2".
std::string left_by(std::string_view setting) {
  const auto filter = DeviceFilter::parse(setting);
  if (!filter) return filter.status().message();
  if (const Status status = filter.value().check_names(kDevices); !status.ok()) return status.message();
  std::string left;
  for (const std::string& device : kDevices) {
    if (const Status status = filter.value().check_ports(device, 2); !status.ok()) return status.message();
    const bool some = filter.value().allows(device, 1) || filter.value().allows(device, 2);
    EXPECT_EQ(filter.value().allows_some(device), some || setting == "^rxe0:1,rxe0:2") << setting << " " << device;
    for (int port : {1, 2})
      if (filter.value().allows(device, port)) left += (left.empty() ? "" : " ") + device + ":" + std::to_string(port);
  }
  return left;
}

TEST(VerbsDeviceFilter, TakesExactNamesPortsAndExclusion) {
  EXPECT_EQ(left_by("mlx5_1"), "mlx5_1:1 mlx5_1:2") << "and not mlx5_10";
  EXPECT_EQ(left_by("mlx5_0:2,rxe0"), "mlx5_0:2 rxe0:1 rxe0:2");
  EXPECT_EQ(left_by("^mlx5_0,mlx5_1,mlx5_10:1"), "mlx5_10:2 rxe0:1 rxe0:2");
  EXPECT_EQ(left_by(""), "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_1:2 mlx5_10:1 mlx5_10:2 rxe0:1 rxe0:2");
  EXPECT_EQ(left_by("rxe0:1,rxe0:2,rxe0"), "rxe0:1 rxe0:2");
}

TEST(VerbsDeviceFilter, RefusesWhatIsNoListWithTheTextAndTheForm) {
  for (const char* text :
       {",", "mlx5_0,", ",mlx5_0", "^", ":1", "mlx5_0:", "mlx5_0:0", "mlx5_0:x", "mlx5_0:1x", "mlx5_0:256",
        "mlx5_0:1:2", "mlx5_0,^mlx5_1", "mlx5_0 ,rxe0", " mlx5_0", "^^mlx5_0", "mlx5_0:-1"})
    EXPECT_THAT(left_by(text), AllOf(HasSubstr("TUTTI_IB_DEVICES is '" + std::string(text) + "'"),
                                     HasSubstr("must be names as in mlx5_0,mlx5_1:1")));
}

TEST(VerbsDeviceFilter, RefusesNamesThatAreNotHereWithThoseThatAre) {
  EXPECT_EQ(left_by("mlx5"),
            "TUTTI_IB_DEVICES names mlx5, which is no RDMA device here; there are: mlx5_0, mlx5_1, mlx5_10, rxe0");
  EXPECT_THAT(left_by("^mlx5_2"), HasSubstr("names mlx5_2, which is no RDMA device here"));
  EXPECT_EQ(left_by("rxe0:3"), "TUTTI_IB_DEVICES names port 3 of rxe0, which has 2");
}

TEST(VerbsDeviceFilter, PreferredDevicesGoFirst) {
  EXPECT_THAT(in_order(kDevices, std::vector<std::string>{"rxe0", "gone", "mlx5_1"}),
              ElementsAre("rxe0", "mlx5_1", "mlx5_0", "mlx5_10"));
  EXPECT_THAT(in_order(kDevices, {}), ElementsAre("mlx5_0", "mlx5_1", "mlx5_10", "rxe0"));
}

GidBytes ipv4(uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }

TEST(VerbsGidTable, TheNetworkIsThatOfTheNetDevicesAddress) {
  const std::vector<NetAddress> addresses = {{ipv4(1), 120, 2}, {ipv4(1), 112, 3}, {ipv4(7), 104, 4}};
  EXPECT_EQ(prefix_bits_of(ipv4(1), 2, addresses), 120);
  EXPECT_EQ(prefix_bits_of(ipv4(1), 3, addresses), 112);
  EXPECT_EQ(prefix_bits_of(ipv4(7), 9, addresses), 104) << "the table names another device";
  EXPECT_EQ(prefix_bits_of(ipv4(8), 2, addresses), 0);
}

TEST(VerbsGidTable, ReadsTheHostsOwnAddresses) {
  const GidBytes loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  const auto addresses = net_addresses();
  if (std::ranges::find(addresses, loopback, &NetAddress::raw) == addresses.end())
    GTEST_SKIP() << "127.0.0.1 is not configured here";
  EXPECT_EQ(prefix_bits_of(loopback, 0, addresses), 96 + 8);
}

TEST(VerbsGidTable, TheBestGoFirstAndWhatNobodyReachesIsLeftOut) {
  const GidBytes link = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const auto sorted = best_first({{link, 0, false, 64},
                                  {link, 1, true, 64},
                                  {ipv4(1), 9, true, 120},
                                  {ipv4(1), 2, false, 120},
                                  {ipv4(1), 3, true, 120},
                                  {GidBytes{}, 4, true, 0},
                                  {ipv4(2), 256, true, 120}});
  std::vector<int> indexes;
  for (const Gid& gid : sorted) indexes.push_back(gid.index);
  EXPECT_THAT(indexes, ElementsAre(3, 9, 1, 2, 0));
}

bool has_device() {
  std::error_code error;
  return std::filesystem::directory_iterator("/sys/class/infiniband", error) != std::filesystem::directory_iterator();
}

TEST(VerbsPorts, WithoutADeviceTheReasonIsGiven) {
  if (has_device()) GTEST_SKIP() << "there are devices in /sys/class/infiniband";
  std::vector<PassedOver> passed_over;
  const auto ports = open_ports({.devices = "mlx5_0"}, {}, passed_over);
  ASSERT_FALSE(ports.ok());
  EXPECT_EQ(ports.status().code(), Code::unsupported);
  EXPECT_THAT(ports.status().message(), HasSubstr("no RDMA device: /sys/class/infiniband"));
  const auto port = Port::open("mlx5_0", 1, {});
  ASSERT_FALSE(port.ok());
  EXPECT_EQ(port.status().message(), "no RDMA device mlx5_0 here");
  EXPECT_EQ(open_ports({.devices = ","}, {}, passed_over).status().code(), Code::invalid_argument);
}

class VerbsRealPorts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "/sys/class/infiniband has no device";
    auto opened = open_ports({}, {}, passed_over);
    if (!opened) GTEST_SKIP() << opened.status().message();
    ports = std::move(*opened);
  }
  static std::string reasons(const std::vector<PassedOver>& list) {
    std::string text;
    for (const PassedOver& one : list) text += one.device + ":" + std::to_string(one.port) + " " + one.why + "\n";
    return text;
  }
  std::vector<std::unique_ptr<Port>> ports;
  std::vector<PassedOver> passed_over;
};

TEST_F(VerbsRealPorts, HaveAnAddressThatReachesThemselves) {
  Address own{.rank = 0, .nonce = 1};
  for (const auto& port : ports) {
    EXPECT_TRUE(port->state().ok()) << port->state().message();
    EXPECT_GT(port->device_attributes().max_qp, 0);
    EXPECT_EQ(port->attributes().state, IBV_PORT_ACTIVE);
    EXPECT_NE(port->domain(), nullptr);
    const auto address = port->address({});
    ASSERT_TRUE(address.ok()) << address.status().message();
    EXPECT_EQ(address.value().name, port->device() + ":" + std::to_string(port->number()));
    for (const Gid& gid : address.value().gids)
      std::printf("%s GID %d: %s/%d %s\n", port->name().c_str(), gid.index, to_string(gid).c_str(), gid.prefix_bits,
                  gid.is_v2 ? "v2" : "v1");
    own.ports.push_back(address.value());
  }
  const auto decoded = Address::decode(own.encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded.value(), own);
  const auto paths = paths_between(own, decoded.value(), {});
  ASSERT_TRUE(paths.ok()) << paths.status().message();
  EXPECT_EQ(paths.value().size(), ports.size());
  for (const Path& path : paths.value()) {
    std::printf("path %d>%d by GID %d\n", path.own_port, path.peer_port, path.own_gid);
    EXPECT_EQ(path.own_port, path.peer_port);
  }
}

TEST_F(VerbsRealPorts, ASettingChoosesOrExcludes) {
  const std::string device = ports[0]->device();
  std::vector<PassedOver> others;
  auto chosen = open_ports({.devices = ports[0]->name()}, {}, others);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->size(), 1u);
  others.clear();
  chosen = open_ports({.devices = "^" + device}, {}, others);
  EXPECT_THAT(others, Contains(AllOf(Field(&PassedOver::device, device),
                                     Field(&PassedOver::why, "excluded by TUTTI_IB_DEVICES"))))
      << reasons(others);
  const auto none = open_ports({.devices = device + "x"}, {}, others);
  EXPECT_EQ(none.status().code(), Code::invalid_argument);
  EXPECT_THAT(none.status().message(), HasSubstr(device));
  EXPECT_EQ(open_ports({.devices = device + ":99"}, {}, others).status().code(), Code::invalid_argument);
}

TEST_F(VerbsRealPorts, TheLastPreferredGoesFirst) {
  const std::string last = ports.back()->device();
  const auto reordered = open_ports({}, std::vector{last}, passed_over);
  ASSERT_TRUE(reordered.ok());
  EXPECT_EQ(reordered.value()[0]->device(), last);
}

TEST_F(VerbsRealPorts, AForcedGidIsTheOnlyOneOrAnErrorThatNamesOthers) {
  const auto all = ports[0]->address({});
  ASSERT_TRUE(all.ok());
  const int last = all.value().gids.back().index;
  const auto forced = ports[0]->address({.gid_index = last});
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  ASSERT_EQ(forced.value().gids.size(), 1u);
  EXPECT_EQ(forced.value().gids[0].index, last);
  const auto absent = ports[0]->address({.gid_index = 250});
  EXPECT_EQ(absent.status().code(), Code::invalid_argument);
  EXPECT_THAT(absent.status().message(),
              AllOf(HasSubstr("TUTTI_IB_GID_INDEX is 250"), HasSubstr(std::to_string(last))));
}

TEST_F(VerbsRealPorts, APortThatIsNotThereIsRefused) {
  EXPECT_EQ(Port::open(ports[0]->device(), 99, {}).status().code(), Code::unsupported);
  EXPECT_EQ(Port::open("nothing0", 1, {}).status().code(), Code::unsupported);
}

TEST_F(VerbsRealPorts, EventsDoNotBlock) {
  for (int i = 0; i < 100; ++i) {
    const AsyncEvent event = ports[0]->take_event();
    if (event.text.empty()) return;
    std::printf("%s\n", event.text.c_str());
    EXPECT_NE(event.lost, AsyncEvent::Lost::device);
  }
  ADD_FAILURE() << "events without end";
}

// A net device that goes down and up again takes its port with it. It is done to guests only.
TEST_F(VerbsRealPorts, ALinkThatGoesDownIsAnEventAndAState) {
  const char* const how = std::getenv("LAB_HOW");
  if (!how || std::string_view(how) == "native") GTEST_SKIP() << "not in a guest of tests/roce/lab";
  const Port& port = *ports[0];
  const std::string net = first_line("/sys/class/infiniband/" + port.device() + "/parent");
  const auto set_link = [&](const std::string& state) {
    ASSERT_EQ(std::system(("ip link set " + net + " " + state).c_str()), 0);
  };
  // The next event that loses or says what is wanted; the kernel sends it from a thread of its own.
  const auto wait_for = [&](std::string_view text) {
    for (int round = 0; round < 500; ++round, usleep(10'000))
      for (AsyncEvent event = port.take_event(); !event.text.empty(); event = port.take_event())
        if (event.text.find(text) != std::string::npos) return event;
    return AsyncEvent{"no such event", AsyncEvent::Lost::nothing, 0};
  };
  set_link("down");
  const AsyncEvent down = wait_for("went down");
  EXPECT_EQ(down.text, "port 1 of " + port.device() + " went down");
  EXPECT_EQ(down.lost, AsyncEvent::Lost::port);
  EXPECT_EQ(port.state().message(), "port 1 of " + port.device() + " is down");
  std::vector<PassedOver> others;
  (void)open_ports({}, {}, others);
  EXPECT_THAT(others, Contains(AllOf(Field(&PassedOver::device, port.device()), Field(&PassedOver::port, 1),
                                     Field(&PassedOver::why, HasSubstr("is down")))));
  set_link("up");
  EXPECT_EQ(wait_for("is active").lost, AsyncEvent::Lost::nothing);
  EXPECT_TRUE(port.state().ok());
}

// Root may lock what it likes: the child gives that up.
TEST_F(VerbsRealPorts, ALowLimitOfLockedMemoryIsNamedWithTheValueNeeded) {
  const std::string device = ports[0]->device();
  const int number = ports[0]->number();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit low{64 << 10, 64 << 10};
    if (setrlimit(RLIMIT_MEMLOCK, &low) != 0 || (geteuid() == 0 && setuid(65534) != 0)) _exit(2);
    const auto port = Port::open(device, number, {});
    if (port.ok()) _exit(3);
    const std::string message = port.status().message();
    if (message.find("Permission denied") != std::string::npos) _exit(2);
    std::fprintf(stderr, "%s\n", message.c_str());
    const bool good = port.status().code() == Code::out_of_resources &&
                      message.find("65536 bytes, at least " + std::to_string(kLeastLockedBytes)) != std::string::npos;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "no user that may open the device and not lock";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// The kernel's half of a context is shared by fork: the child must not take the parent's down.
TEST_F(VerbsRealPorts, AForkedChildLeavesItsParentsPortAlone) {
  const pid_t child = fork();
  if (child == 0) {
    ports.clear();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ports[0]->state().ok());
  EXPECT_TRUE(probe(ports[0]->context(), ports[0]->domain(), ports[0]->number()).ok());
}

}  // namespace
}  // namespace tutti::internal::verbs
