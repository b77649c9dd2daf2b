// What a rank publishes of its ports, and the paths that follow: tables of cases, no device.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <stdexcept>

#include "transport/verbs/address.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Kind { v1, v2 };

// gid(3, "::ffff:10.0.0.1", 120, Kind::v2)
Gid gid(int index, const char* text, int prefix_bits, Kind kind = Kind::v2) {
  Gid gid;
  if (inet_pton(AF_INET6, text, gid.raw.data()) != 1) throw std::invalid_argument(text);
  gid.index = index;
  gid.is_v2 = kind == Kind::v2;
  gid.prefix_bits = prefix_bits;
  return gid;
}

PortAddress ethernet(const char* name, std::vector<Gid> gids, uint8_t mtu = 3) {
  return {.name = name, .mtu = mtu, .gids = std::move(gids)};
}
PortAddress infiniband(const char* name, uint16_t lid, const char* gid0, uint8_t mtu = 5) {
  return {.name = name, .is_infiniband = true, .lid = lid, .mtu = mtu, .gids = {gid(0, gid0, 64, Kind::v1)}};
}
// The same with a listener for rdma_cm.
PortAddress listening(PortAddress port, const char* ip) {
  port.listener = {.ip = gid(0, ip, 0).raw, .port = 4791};
  return port;
}
Address address(int rank, std::vector<PortAddress> ports) {
  return {.rank = rank, .nonce = 7, .ports = std::move(ports)};
}

Address example() {
  Address address{.rank = 3,
                  .nonce = 0x0123456789abcdef,
                  .ports = {ethernet("mlx5_0:1", {gid(3, "::ffff:10.0.0.1", 120),
                                                  gid(2, "::ffff:10.0.0.1", 120, Kind::v1), gid(0, "fe80::1", 64)}),
                            listening(infiniband("mlx5_1:2", 0xfedc, "fe80::2:3"), "2001:db8::7")}};
  address.ports[0].ping_pair = kMostPairNumber;
  return address;
}

// "own port>peer port own gid>peer gid", or the reason.
std::vector<std::string> paths(const Address& own, const Address& peer, const Settings& settings = {}) {
  const auto found = paths_between(own, peer, settings);
  if (!found) return {found.status().message()};
  std::vector<std::string> texts;
  for (const Path& path : found.value())
    texts.push_back(std::to_string(path.own_port) + ">" + std::to_string(path.peer_port) + " " +
                    std::to_string(path.own_gid) + ">" + std::to_string(path.peer_gid));
  return texts;
}
std::vector<std::string> paths(std::vector<Gid> own, std::vector<Gid> peer, const Settings& settings = {}) {
  return paths(address(0, {ethernet("a:1", std::move(own))}), address(1, {ethernet("b:1", std::move(peer))}), settings);
}

TEST(VerbsAddress, GoesThroughTheStoreAndGivesThePathOfTwoRanks) {
  const Address own = example();
  Address peer = example();
  peer.rank = 4;
  peer.ports[0].gids = {gid(1, "::ffff:10.0.0.2", 120)};
  peer.ports[0].mtu = 2;
  peer.ports.pop_back();
  const auto sent = Address::decode(peer.encode());
  ASSERT_TRUE(sent.ok()) << sent.status().message();
  EXPECT_EQ(sent.value(), peer);

  const auto found = paths_between(own, sent.value(), {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found.value().size(), 1u);
  const Path& path = found.value()[0];
  EXPECT_EQ(path.own_gid, 3);
  EXPECT_EQ(path.peer_gid, 1);
  EXPECT_EQ(path.peer_gid_raw, peer.ports[0].gids[0].raw);
  EXPECT_TRUE(path.is_global);
  EXPECT_EQ(path.mtu, 2);
}

TEST(VerbsAddress, SaysWhatAGidIs) {
  EXPECT_EQ(to_string(gid(0, "::ffff:10.0.0.1", 0)), "::ffff:10.0.0.1");
  EXPECT_EQ(to_string(gid(0, "fe80::1", 0)), "fe80::1");
  EXPECT_EQ(short_text(gid(0, "::ffff:10.0.0.1", 0).raw), "10.0.0.1");
  EXPECT_EQ(short_text(gid(0, "fe80::1", 0).raw), "fe80::1");
  EXPECT_TRUE(gid(0, "::ffff:10.0.0.1", 0).is_ipv4());
  EXPECT_FALSE(gid(0, "::10.0.0.1", 0).is_ipv4());
  EXPECT_FALSE(gid(0, "1::ffff:10.0.0.1", 0).is_ipv4());
  for (const char* text : {"fe80::1", "febf::1", "::ffff:169.254.3.4"})
    EXPECT_TRUE(gid(0, text, 0).is_link_local()) << text;
  for (const char* text : {"fec0::1", "fd00::1", "::ffff:10.254.0.1", "::ffff:254.128.0.1", "2001:db8::1"})
    EXPECT_FALSE(gid(0, text, 0).is_link_local()) << text;
  for (const char* text : {"::", "::1", "ff02::1", "::ffff:0.0.0.0", "::ffff:127.0.0.1", "::ffff:224.0.0.1"})
    EXPECT_TRUE(is_nowhere(gid(0, text, 0).raw)) << text;
  for (const char* text : {"::2", "::ffff:126.0.0.1", "::ffff:10.0.0.0", "fe80::1", "1::"})
    EXPECT_FALSE(is_nowhere(gid(0, text, 0).raw)) << text;
}

TEST(VerbsAddress, SendsNoMoreThanItsBounds) {
  Address address = example();
  address.ports[0].gids.assign(kMostGids + 5, gid(1, "fd00::1", 64));
  address.ports[0].name = std::string(kMostNameBytes + 10, 'n');
  while (address.ports.size() < kMaxPorts + 3) address.ports.push_back(address.ports[0]);
  const auto decoded = Address::decode(address.encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded.value().ports.size(), kMaxPorts);
  EXPECT_EQ(decoded.value().ports[0].gids.size(), kMostGids);
  EXPECT_EQ(decoded.value().ports[0].name.size(), kMostNameBytes);
  EXPECT_EQ(*Address::decode(Address{.rank = 0}.encode()), Address{.rank = 0}) << "a rank without a port";
}

TEST(VerbsAddress, RefusesWhatIsCutOrTooLong) {
  const std::string text = example().encode();
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    const auto decoded = Address::decode(std::string_view(text).substr(0, bytes));
    ASSERT_FALSE(decoded.ok()) << bytes;
    EXPECT_EQ(decoded.status().code(), Code::invalid_argument);
  }
  EXPECT_THAT(Address::decode(text + "xy").status().message(), HasSubstr("2 bytes too many"));
}

TEST(VerbsAddress, RefusesEachFieldOutOfItsBounds) {
  constexpr size_t kPort = 18;              // after magic, version, rank, nonce, through_rdmacm, count
  constexpr size_t kAfterName = kPort + 9;  // "mlx5_0:1"
  constexpr size_t kGid = kAfterName + 9;
  const size_t end = example().encode().size();  // of the second port's listener
  const auto refusal = [](size_t at, int value) {
    std::string text = example().encode();
    text[at] = static_cast<char>(value);
    const auto decoded = Address::decode(text);
    return decoded.ok() ? "accepted" : decoded.status().message();
  };
  EXPECT_THAT(refusal(0, 'X'), HasSubstr("no address of the verbs transport"));
  EXPECT_THAT(refusal(3, 2), HasSubstr("version 2, 3 expected"));
  EXPECT_THAT(refusal(7, 0x80), HasSubstr("no rank"));
  EXPECT_THAT(refusal(16, 2), HasSubstr("through rdma_cm"));
  EXPECT_THAT(refusal(17, 9), HasSubstr("9 ports, 0 to 8 allowed"));
  EXPECT_THAT(refusal(kPort, 0), HasSubstr("0 bytes of a port's name"));
  EXPECT_THAT(refusal(kPort, 81), HasSubstr("81 bytes of a port's name"));
  EXPECT_THAT(refusal(kPort + 1, '\n'), HasSubstr("no name"));
  EXPECT_THAT(refusal(kAfterName, 2), HasSubstr("kind of a port"));
  EXPECT_THAT(refusal(kAfterName + 3, 0), HasSubstr("MTU"));
  EXPECT_THAT(refusal(kAfterName + 3, 6), HasSubstr("MTU"));
  EXPECT_THAT(refusal(kAfterName + 7, 1), HasSubstr("queue pair that cannot be"));
  EXPECT_THAT(refusal(kAfterName + 8, 17), HasSubstr("17 GIDs of a port"));
  EXPECT_THAT(refusal(kGid + 17, 2), HasSubstr("GID's kind"));
  EXPECT_THAT(refusal(kGid + 18, 129), HasSubstr("129 bits"));
  EXPECT_THAT(refusal(end - 19, 2), HasSubstr("2 listeners"));
  EXPECT_THAT(refusal(end - 18, 0xff), HasSubstr("listener that is nowhere")) << "multicast";
  EXPECT_EQ(refusal(end - 18, 0x2a), "accepted");
  EXPECT_EQ(refusal(kGid + 16, 255), "accepted") << "every index that a byte holds";
}

TEST(VerbsAddress, DamageIsRefusedOrReadAsSomethingWithinBounds) {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  const auto seed = given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  SCOPED_TRACE("TUTTI_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = example().encode();
    for (auto changes = 1 + random() % 3; changes > 0; --changes)
      text[random() % text.size()] = static_cast<char>(random());
    const auto decoded = Address::decode(text);
    if (!decoded) continue;
    ASSERT_EQ(decoded.value().encode(), text);
    (void)paths_between(example(), decoded.value(), {});
  }
}

TEST(VerbsPaths, TheSameSubnetGoesFirst) {
  EXPECT_THAT(paths({gid(1, "::ffff:10.0.0.1", 120), gid(3, "::ffff:10.1.0.1", 120)}, {gid(5, "::ffff:10.1.0.2", 120)}),
              ElementsAre("0>0 3>5"));
  EXPECT_THAT(paths({gid(1, "::ffff:10.0.0.1", 120), gid(3, "2001:db8::1", 64)},
                    {gid(5, "::ffff:10.1.0.2", 120), gid(6, "2001:db8::2", 64)}),
              ElementsAre("0>0 3>6"));
  EXPECT_THAT(paths({gid(1, "::ffff:10.0.0.1", 120), gid(2, "::ffff:10.7.0.1", 120, Kind::v1)},
                    {gid(5, "::ffff:10.1.0.2", 120), gid(6, "::ffff:10.7.0.2", 120, Kind::v1)}),
              ElementsAre("0>0 2>6"))
      << "even by version 1";
  EXPECT_THAT(
      paths({gid(1, "::ffff:10.0.0.129", 121), gid(2, "::ffff:10.0.0.1", 121)}, {gid(5, "::ffff:10.0.0.2", 121)}),
      ElementsAre("0>0 2>5"))
      << "prefixes end within a byte";
  EXPECT_THAT(paths({gid(1, "::ffff:10.0.0.1", 112), gid(2, "::ffff:10.0.9.1", 120)}, {gid(5, "::ffff:10.0.9.2", 120)}),
              ElementsAre("0>0 2>5"))
      << "each must be in the other's network";
}

TEST(VerbsPaths, Version2GoesBeforeVersion1AndRoutableBeforeLinkLocal) {
  const std::vector<Gid> own = {gid(0, "fe80::1", 64, Kind::v1), gid(1, "fe80::1", 64),
                                gid(2, "::ffff:10.0.0.1", 120, Kind::v1), gid(3, "::ffff:10.0.0.1", 120)};
  const std::vector<Gid> peer = {gid(0, "fe80::2", 64, Kind::v1), gid(1, "fe80::2", 64),
                                 gid(2, "::ffff:10.0.0.2", 120, Kind::v1), gid(3, "::ffff:10.0.0.2", 120)};
  EXPECT_THAT(paths(own, peer), ElementsAre("0>0 3>3"));
  EXPECT_THAT(paths({own[0], own[1], own[2]}, peer), ElementsAre("0>0 2>2"));
  EXPECT_THAT(paths({own[0], own[1]}, peer), ElementsAre("0>0 1>1"));
  EXPECT_THAT(paths({own[0]}, peer), ElementsAre("0>0 0>0"));
}

TEST(VerbsPaths, RoutersCarryGlobalAddressesOfVersion2Only) {
  EXPECT_THAT(paths({gid(0, "fe80::1", 64), gid(3, "::ffff:10.0.0.1", 120)},
                    {gid(0, "fe80::2", 64), gid(4, "::ffff:10.9.0.1", 120)}),
              ElementsAre("0>0 3>4"));
  EXPECT_THAT(paths({gid(3, "::ffff:10.0.0.1", 0)}, {gid(4, "::ffff:10.0.0.2", 0)}), ElementsAre("0>0 3>4"))
      << "networks that are not known";
  EXPECT_THAT(paths({gid(2, "::ffff:10.0.0.1", 120, Kind::v1)}, {gid(2, "::ffff:10.9.0.1", 120, Kind::v1)}),
              ElementsAre(HasSubstr("no GIDs of one kind")));
  EXPECT_THAT(paths({gid(2, "::ffff:10.0.0.1", 0, Kind::v1)}, {gid(2, "::ffff:10.0.0.2", 120, Kind::v1)}),
              ElementsAre("0>0 2>2"))
      << "it may be the same link: nothing better is there";
}

TEST(VerbsPaths, KindsAreNeverMixed) {
  const Gid v4 = gid(0, "::ffff:10.0.0.1", 120), v4_v1 = gid(1, "::ffff:10.0.0.2", 120, Kind::v1);
  const Gid v6 = gid(2, "2001:db8::1", 64), link = gid(3, "fe80::1", 64), link_v4 = gid(4, "::ffff:169.254.0.1", 112);
  const std::vector<Gid> kinds = {v4, v4_v1, v6, link, link_v4};
  for (const Gid& own : kinds)
    for (const Gid& peer : kinds)
      EXPECT_EQ(paths_between(address(0, {ethernet("a:1", {own})}), address(1, {ethernet("b:1", {peer})}), {}).ok(),
                own.index == peer.index)
          << to_string(own) << " to " << to_string(peer);
  EXPECT_THAT(paths({v4}, {v6}),
              ElementsAre("no RDMA path to rank 1: a:1 and its b:1: no GIDs of one kind that can meet: "
                          "::ffff:10.0.0.1 (v2); 2001:db8::1 (v2)"));
}

TEST(VerbsPaths, LoopbackAndZeroAreNoAddresses) {
  for (const char* text : {"::", "::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0"})
    EXPECT_THAT(paths({gid(0, text, 104)}, {gid(0, text, 104)}), ElementsAre(HasSubstr("no RDMA path"))) << text;
  EXPECT_THAT(paths(std::vector<Gid>(), std::vector<Gid>()), ElementsAre(HasSubstr("none; none")));
}

TEST(VerbsPaths, OneMachineReachesItselfByItsOwnPort) {
  const std::vector<Gid> table = {gid(1, "::ffff:10.0.0.1", 0), gid(0, "fe80::1", 64)};
  EXPECT_THAT(paths(table, table), ElementsAre("0>0 1>1"));
  const Gid v1 = gid(2, "::ffff:10.0.0.1", 0, Kind::v1);
  EXPECT_THAT(paths({gid(0, "fe80::1", 64), v1}, {gid(0, "fe80::1", 64), v1}), ElementsAre("0>0 2>2"))
      << "the same GID is the same network, known or not";
  const Address both = address(
      0, {ethernet("a:1", {gid(1, "::ffff:10.0.0.1", 120)}), ethernet("b:1", {gid(1, "::ffff:10.0.0.2", 120)})});
  EXPECT_THAT(paths(both, both), ElementsAre("0>0 1>1", "1>1 1>1"));
}

TEST(VerbsPaths, ASettingForcesOurGidAndThePeersFollows) {
  const std::vector<Gid> own = {gid(3, "::ffff:10.0.0.1", 120), gid(1, "fe80::1", 64)};
  const std::vector<Gid> peer = {gid(5, "::ffff:10.0.0.2", 120), gid(4, "fe80::2", 64)};
  EXPECT_THAT(paths(own, peer, {.gid_index = 1}), ElementsAre("0>0 1>4"));
  EXPECT_THAT(paths(own, peer, {.gid_index = 3}), ElementsAre("0>0 3>5"));
  EXPECT_THAT(paths(own, peer, {.gid_index = 9}),
              ElementsAre(HasSubstr("there is no GID 9 as TUTTI_IB_GID_INDEX asks")));
}

TEST(VerbsPaths, InfinibandGoesByLidWithinASubnetAndByGidBetweenSubnets) {
  const auto path = [](const PortAddress& own, const PortAddress& peer) {
    return paths_between(address(0, {own}), address(1, {peer}), {});
  };
  auto found = path(infiniband("a:1", 4, "fe80::1", 5), infiniband("b:1", 9, "fe80::2", 4));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found.value()[0], (Path{.peer_lid = 9, .mtu = 4}));

  const PortAddress own = infiniband("a:1", 4, "fec0:1::1"), peer = infiniband("b:1", 4, "fec0:2::1");
  found = path(listening(own, "::ffff:10.0.0.1"), listening(peer, "::ffff:10.0.1.1"));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(found.value()[0].is_global);
  EXPECT_EQ(found.value()[0].own_gid, 0);
  EXPECT_EQ(found.value()[0].peer_gid_raw, gid(0, "fec0:2::1", 0).raw);

  EXPECT_THAT(path(listening(own, "::ffff:10.0.0.1"), peer).status().message(),
              HasSubstr("different InfiniBand subnets, and b:1 has no rdma_cm listener"));
  EXPECT_THAT(path(own, listening(peer, "::ffff:10.0.1.1")).status().message(),
              HasSubstr("a:1 has no rdma_cm listener"));
  EXPECT_THAT(path(infiniband("a:1", 4, "fe80::1"), infiniband("b:1", 9, "fec0:2::1")).status().message(),
              HasSubstr("default prefix"));
  EXPECT_THAT(path(infiniband("a:1", 0, "fe80::1"), infiniband("b:1", 9, "fe80::2")).status().message(),
              HasSubstr("without a LID"));
  EXPECT_THAT(path(infiniband("a:1", 4, "fe80::1"), ethernet("b:1", {gid(0, "fe80::2", 64)})).status().message(),
              HasSubstr("InfiniBand and Ethernet do not meet"));
  PortAddress bare = infiniband("a:1", 4, "fe80::1");
  bare.gids.clear();
  EXPECT_THAT(path(bare, infiniband("b:1", 9, "fe80::2")).status().message(), HasSubstr("without a GID"));
}

// Ports by the third byte of their address: net(1) and net(1) share a network.
PortAddress net(int number, int host) {
  const std::string text = "::ffff:10.0." + std::to_string(number) + "." + std::to_string(host);
  return ethernet("p:1", {gid(3, text.c_str(), 120)});
}

TEST(VerbsPaths, EachPortHasOnePartnerAndRailsKeepToTheirNetworks) {
  EXPECT_THAT(paths(address(0, {net(1, 1), net(1, 2)}), address(1, {net(1, 3), net(1, 4)})),
              ElementsAre("0>0 3>3", "1>1 3>3"));
  EXPECT_THAT(paths(address(0, {net(1, 1), net(2, 1)}), address(1, {net(2, 2), net(1, 2)})),
              ElementsAre("0>1 3>3", "1>0 3>3"));
  EXPECT_THAT(paths(address(0, {net(1, 1), net(2, 1)}), address(1, {net(3, 2), net(2, 2)})),
              ElementsAre("1>1 3>3", "0>0 3>3"))
      << "the same subnet first, then what routers carry";
  EXPECT_THAT(paths(address(0, {net(1, 1), net(1, 2), net(1, 3)}), address(1, {net(1, 4)})), ElementsAre("0>0 3>3"));
  EXPECT_THAT(paths(address(0, {net(1, 1)}), address(1, {net(2, 4), net(1, 4)})), ElementsAre("0>1 3>3"));
}

TEST(VerbsPaths, AsManyPortsAsPossibleHaveAPartner) {
  // Our first port could go to either, our second to the peer's first only.
  const Gid v4 = gid(1, "::ffff:10.0.0.1", 120), v6 = gid(2, "2001:db8::1", 64);
  EXPECT_THAT(paths(address(0, {ethernet("a:1", {v4, v6}), ethernet("b:1", {v4})}),
                    address(1, {ethernet("c:1", {v4}), ethernet("d:1", {v6})})),
              ElementsAre("0>1 2>2", "1>0 1>1"));
}

TEST(VerbsPaths, APortKeepsItsBetterPartnerEvenIfAnotherIsThenAlone) {
  const Gid v6 = gid(2, "2001:db8::1", 64), far_v6 = gid(2, "2001:db9::1", 64);
  EXPECT_THAT(paths(address(0, {ethernet("a:1", {gid(1, "::ffff:10.0.0.1", 120), v6}),
                                ethernet("b:1", {gid(1, "::ffff:10.9.0.1", 120)})}),
                    address(1, {ethernet("c:1", {gid(1, "::ffff:10.0.0.2", 120)}), ethernet("d:1", {far_v6})})),
              ElementsAre("0>0 1>1"));
}

TEST(VerbsPaths, OfEqualGidsTheFirstOfBothEndsAreTaken) {
  EXPECT_THAT(paths({gid(3, "::ffff:10.0.0.1", 120), gid(5, "::ffff:10.0.0.2", 120)},
                    {gid(7, "::ffff:10.0.0.3", 120), gid(8, "::ffff:10.0.0.4", 120)}),
              ElementsAre("0>0 3>7"));
}

TEST(VerbsPaths, ThroughRdmacmEveryPathHasListenersAtBothEnds) {
  Address own = address(0, {listening(net(1, 1), "::ffff:10.0.1.1"), net(2, 1)});
  const Address peer = address(1, {listening(net(1, 2), "::ffff:10.0.1.2"), listening(net(2, 2), "::ffff:10.0.2.2")});
  EXPECT_THAT(paths(own, peer), ElementsAre("0>0 3>3", "1>1 3>3"));
  EXPECT_FALSE(by_rdmacm(own, peer, *paths_between(own, peer, {})));
  own.through_rdmacm = true;
  EXPECT_THAT(paths(own, peer), ElementsAre("0>0 3>3"));
  EXPECT_THAT(paths(peer, own), ElementsAre("0>0 3>3")) << "either end's wish is enough";
  EXPECT_TRUE(by_rdmacm(own, peer, *paths_between(own, peer, {})));
  EXPECT_TRUE(by_rdmacm(peer, own, *paths_between(peer, own, {})));
  EXPECT_THAT(paths(own, address(1, {net(1, 2)})), ElementsAre(HasSubstr("p:1 has no rdma_cm listener")));
}

TEST(VerbsPaths, ByRdmacmAlsoWhereOnlyThatFindsTheWay) {
  const Address own = address(0, {listening(infiniband("a:1", 4, "fec0:1::1"), "::ffff:10.0.0.1"), net(1, 1)});
  const Address peer = address(1, {listening(infiniband("b:1", 9, "fec0:2::1"), "::ffff:10.0.1.1"), net(1, 2)});
  for (const auto& [one, other] : {std::pair(own, peer), std::pair(peer, own)}) {
    const auto found = paths_between(one, other, {});
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value().size(), 1u) << "not the one that rdma_cm cannot connect";
    EXPECT_TRUE(by_rdmacm(one, other, found.value()));
  }
  const Address near = address(2, {infiniband("c:1", 7, "fec0:1::2")});
  EXPECT_FALSE(by_rdmacm(own, near, *paths_between(own, near, {}))) << "within a subnet by letters";
}

TEST(VerbsPaths, ARankWithoutPortsIsNotReached) {
  EXPECT_THAT(paths(address(0, {}), address(1, {net(1, 1)})),
              ElementsAre("no RDMA path to rank 1: this rank has no RDMA port"));
  EXPECT_THAT(paths(address(0, {net(1, 1)}), address(1, {})),
              ElementsAre("no RDMA path to rank 1: it has no RDMA port"));
}

TEST(VerbsPaths, SeenFromTheOtherEndItIsTheSamePath) {
  Address a = address(0, {net(1, 1), net(2, 1), infiniband("i:1", 4, "fe80::1"), infiniband("j:1", 5, "fec0:1::1")});
  Address b = address(1, {infiniband("k:1", 8, "fe80::2"), net(2, 2), net(1, 2), infiniband("l:1", 9, "fec0:2::1")});
  b.ports[1].gids[0].index = 4;
  b.ports[3].gids[0].index = 1;
  for (Address* const one : {&a, &b})
    for (PortAddress& port : one->ports) port = listening(port, "::ffff:10.0.0.1");
  const auto there = paths_between(a, b, {}), back = paths_between(b, a, {});
  ASSERT_TRUE(there.ok() && back.ok());
  ASSERT_EQ(there.value().size(), 4u);
  for (const Path& path : there.value()) {
    const Path seen = reversed(path, a.ports[static_cast<size_t>(path.own_port)]);
    EXPECT_THAT(back.value(), ::testing::Contains(seen)) << path.own_port;
    EXPECT_EQ(reversed(seen, b.ports[static_cast<size_t>(path.peer_port)]), path);
  }
}

}  // namespace
}  // namespace tutti::internal::verbs
