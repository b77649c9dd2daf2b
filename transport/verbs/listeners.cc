#include "transport/verbs/listeners.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>

#include "src/base/first_line.h"
#include "src/base/log.h"

namespace tutti::internal::verbs {
namespace {

// As many unanswered requests as the system allows.
constexpr int kBacklog = 0;

// IPv6 addresses of one link only would need a scope on both ends. IPv4 has no such thing.
bool is_usable(const GidBytes& ip) { return !is_nowhere(ip) && (is_ipv4(ip) || !is_link_local(ip)); }

std::string link_address(unsigned net_device) {
  std::array<char, IF_NAMESIZE> name{};
  if (if_indextoname(net_device, name.data()) == nullptr) return {};
  return first_line(std::filesystem::path("/sys/class/net") / name.data() / "address");
}

// Whether nothing but rdma_cm may lead from this port to some of the others.
bool may_be_routed(const PortAddress& port) {
  return port.is_infiniband && !port.gids.empty() && !port.gids.front().is_link_local();
}

}  // namespace

std::optional<GidBytes> gid_of_ipoib(std::string_view link_address) {
  constexpr size_t kBytes = 20;
  constexpr size_t kStep = 3;  // two digits and a colon
  if (link_address.size() != kBytes * kStep - 1) return std::nullopt;
  std::array<uint8_t, kBytes> bytes{};
  for (size_t i = 0; i < kBytes; ++i) {
    const char* const first = link_address.data() + i * kStep;
    const auto [end, error] = std::from_chars(first, first + 2, bytes[i], 16);
    if (error != std::errc() || end != first + 2 || (i + 1 < kBytes && *end != ':')) return std::nullopt;
  }
  GidBytes gid{};
  std::copy(bytes.end() - gid.size(), bytes.end(), gid.begin());
  return gid;
}

std::optional<GidBytes> ip_of(const PortAddress& port, std::span<const NetAddress> addresses) {
  if (!port.is_infiniband) {
    const auto found = std::ranges::find_if(port.gids, is_usable, &Gid::raw);
    return found == port.gids.end() ? std::nullopt : std::optional(found->raw);
  }
  for (const NetAddress& address : addresses) {
    if (!is_usable(address.raw)) continue;
    const auto gid = gid_of_ipoib(link_address(address.net_device));
    if (gid && !port.gids.empty() && *gid == port.gids.front().raw) return address.raw;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Listeners>> Listeners::open(std::span<const std::unique_ptr<Port>> ports, Address& address) {
  const bool is_wanted = address.through_rdmacm;
  if (!is_wanted && std::ranges::none_of(address.ports, may_be_routed)) return std::unique_ptr<Listeners>();
  auto channel = CmChannel::open();
  if (!channel && is_wanted)
    return Status(Code::unsupported, fmt::format("TUTTI_IB_CONNECT is rdmacm: {}", channel.status().message()));
  if (!channel) {
    log_debug("{}", channel.status().message());
    return std::unique_ptr<Listeners>();
  }
  std::unique_ptr<Listeners> listeners(new Listeners(std::move(*channel)));
  listeners->ids_.resize(ports.size());
  std::vector<std::string> reasons;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (!is_wanted && !may_be_routed(address.ports[i])) continue;
    const Status status = listeners->listen(*ports[i], i, address.ports[i]);
    if (!status.ok()) reasons.push_back(status.message());
  }
  for (const std::string& reason : reasons)
    if (is_wanted) log_info("no rdma_cm: {}", reason);
  if (std::ranges::any_of(address.ports, [](const PortAddress& port) { return port.listener.is_there(); }))
    return listeners;
  if (!is_wanted) return std::unique_ptr<Listeners>();
  return Status(Code::unsupported, fmt::format("TUTTI_IB_CONNECT is rdmacm, and no port can be used with it: {}",
                                               fmt::join(reasons, "; ")));
}

Status Listeners::listen(const Port& port, size_t index, PortAddress& address) {
  const auto ip = ip_of(address, net_addresses());
  if (!ip)
    return Status(Code::unsupported, fmt::format("{} has no IPv4 or global IPv6 address{}", port.name(),
                                                 address.is_infiniband ? " of an IPoIB device" : ""));
  auto id = channel_->make_id({.rank = -1, .index = static_cast<uint8_t>(index)});
  if (!id) return id.status();
  const std::string where = fmt::format("on {} at {}", port.name(), to_string(Gid{.raw = *ip}));
  sockaddr_storage own = socket_address(*ip, 0);
  if (rdma_bind_addr(id->get(), reinterpret_cast<sockaddr*>(&own)) != 0)
    return Status::system(Code::unsupported, "rdma_bind_addr " + where, errno);
  if (!is_bound_to(**id, port.device(), port.number()))
    return Status(Code::unsupported, fmt::format("rdma_cm takes {} for an address of another port than {}",
                                                 to_string(Gid{.raw = *ip}), port.name()));
  if (rdma_listen(id->get(), kBacklog) != 0) return Status::system(Code::unsupported, "rdma_listen " + where, errno);
  address.listener = {.ip = *ip, .port = ntohs(rdma_get_src_port(id->get()))};
  if (!address.is_infiniband) std::erase_if(address.gids, [&](const Gid& gid) { return gid.raw != *ip; });
  ids_[index] = std::move(*id);
  return {};
}

}  // namespace tutti::internal::verbs
