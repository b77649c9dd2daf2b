#include "transport/verbs/gid_table.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

namespace tutti::internal::verbs {
namespace {

constexpr int kMappedBits = 96;      // ::ffff:0:0/96 before an IPv4 address
constexpr int kInfinibandBits = 64;  // the subnet prefix

int count_bits(const void* mask, size_t bytes) {
  int bits = 0;
  for (size_t i = 0; i < bytes; ++i) bits += std::popcount(static_cast<const uint8_t*>(mask)[i]);
  return bits;
}

GidBytes mapped(const in_addr& address) {
  GidBytes raw{};
  raw[10] = raw[11] = 0xff;
  std::memcpy(raw.data() + 12, &address, sizeof address);
  return raw;
}

// False for what is neither IPv4 nor IPv6, or has no mask.
bool read_address(const ifaddrs& entry, NetAddress& result) {
  if (!entry.ifa_addr || !entry.ifa_netmask) return false;
  if (entry.ifa_addr->sa_family == AF_INET) {
    result.raw = mapped(reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr);
    const in_addr& mask = reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask)->sin_addr;
    result.prefix_bits = kMappedBits + count_bits(&mask, sizeof mask);
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    std::memcpy(result.raw.data(), &reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr,
                sizeof result.raw);
    const in6_addr& mask = reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask)->sin6_addr;
    result.prefix_bits = count_bits(&mask, sizeof mask);
  } else {
    return false;
  }
  result.net_device = if_nametoindex(entry.ifa_name);
  return true;
}

// How many entries the tables of all ports have.
size_t table_size(ibv_context* context) {
  ibv_device_attr device{};
  if (ibv_query_device(context, &device) != 0) return 0;
  size_t entries = 0;
  for (int port = 1; port <= device.phys_port_cnt; ++port) {
    ibv_port_attr attributes{};
    if (ibv_query_port(context, static_cast<uint8_t>(port), &attributes) == 0)
      entries += static_cast<size_t>(std::max(attributes.gid_tbl_len, 0));
  }
  return entries;
}

}  // namespace

std::vector<NetAddress> net_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<NetAddress> addresses;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next)
    if (NetAddress address; read_address(*entry, address)) addresses.push_back(address);
  return addresses;
}

int prefix_bits_of(const GidBytes& gid, unsigned net_device, std::span<const NetAddress> addresses) {
  int elsewhere = 0;  // the table may name the lower device of a bond
  for (const NetAddress& address : addresses) {
    if (address.raw != gid) continue;
    if (address.net_device == net_device) return address.prefix_bits;
    elsewhere = address.prefix_bits;
  }
  return elsewhere;
}

std::vector<Gid> best_first(std::vector<Gid> gids) {
  std::erase_if(gids, [](const Gid& gid) { return is_nowhere(gid.raw) || gid.index > kMostGidIndex; });
  std::ranges::sort(
      gids, {}, [](const Gid& gid) { return std::pair(-static_cast<int>(class_of(gid.raw, gid.is_v2)), gid.index); });
  return gids;
}

Result<std::vector<Gid>> read_gid_table(ibv_context* context, int port) {
  // The library asks the kernel, or reads sysfs where the kernel is older than the question.
  std::vector<ibv_gid_entry> entries(table_size(context));
  if (entries.empty()) return Status(Code::unsupported, "its GID table has no entries");
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  if (count < 0) return Status::system(Code::unsupported, "ibv_query_gid_table", static_cast<int>(-count));
  entries.resize(static_cast<size_t>(count));

  const std::vector<NetAddress> addresses = net_addresses();
  std::vector<Gid> gids;
  for (const ibv_gid_entry& entry : entries) {
    if (entry.port_num != static_cast<uint32_t>(port)) continue;
    Gid gid;
    std::ranges::copy(entry.gid.raw, gid.raw.begin());
    gid.index = static_cast<int>(entry.gid_index);
    gid.is_v2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    gid.prefix_bits =
        entry.gid_type == IBV_GID_TYPE_IB ? kInfinibandBits : prefix_bits_of(gid.raw, entry.ndev_ifindex, addresses);
    gids.push_back(gid);
  }
  return best_first(std::move(gids));
}

}  // namespace tutti::internal::verbs
