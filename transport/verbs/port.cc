#include "transport/verbs/port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/verbs/gid_table.h"
#include "transport/verbs/probe.h"

namespace tutti::internal::verbs {
namespace {

// Of what the port has, what the settings leave.
Status keep_asked(std::vector<Gid>& gids, int index, const std::string& port) {
  if (index < 0) return {};
  const auto asked = std::ranges::find(gids, index, &Gid::index);
  if (asked == gids.end()) {
    std::vector<int> indexes;
    for (const Gid& gid : gids) indexes.push_back(gid.index);
    std::ranges::sort(indexes);
    return Status(Code::invalid_argument,
                  fmt::format("TUTTI_IB_GID_INDEX is {}; the GIDs of {} that can be used are {}", index, port,
                              fmt::join(indexes, ", ")));
  }
  gids = {*asked};
  return {};
}

}  // namespace

Port::Port(std::string device, int number, ContextPtr context)
    : device_(std::move(device)), number_(number), context_(std::move(context)) {}

Port::~Port() {
  if (domain_ && context_.get_deleter().epoch == process_epoch()) ibv_dealloc_pd(domain_);
}

std::string Port::name() const { return fmt::format("{}:{}", device_, number_); }

Result<std::unique_ptr<Port>> Port::open(const std::string& device, int number, const Settings& settings) {
  auto context = open_device(device);
  if (!context) return context.status();
  std::unique_ptr<Port> port(new Port(device, number, std::move(*context)));
  TUTTI_RETURN_IF_ERROR(port->start());
  if (auto address = port->address(settings); !address) return address.status();
  return port;
}

Status Port::start() {
  if (context_->device->transport_type == IBV_TRANSPORT_IWARP)
    return Status(Code::unsupported, "an iWARP device: no writes with immediate, which tutti needs");
  if (const int error = ibv_query_device(context_.get(), &device_attributes_); error != 0)
    return Status::system(Code::unsupported, "ibv_query_device", error);
  if (number_ < 1 || number_ > device_attributes_.phys_port_cnt)
    return Status(Code::unsupported, fmt::format("no such port; it has {}", int{device_attributes_.phys_port_cnt}));
  TUTTI_RETURN_IF_ERROR(state());
  auto attributes = query();
  if (!attributes) return attributes.status();
  attributes_ = *attributes;
  domain_ = ibv_alloc_pd(context_.get());
  if (!domain_) return Status::system(Code::out_of_resources, "ibv_alloc_pd", errno);
  return probe(context_.get(), domain_, number_);
}

Result<ibv_port_attr> Port::query() const {
  ibv_port_attr attributes{};
  if (const int error = ibv_query_port(context_.get(), static_cast<uint8_t>(number_), &attributes); error != 0)
    return Status::system(Code::unsupported, fmt::format("ibv_query_port of {}", name()), error);
  return attributes;
}

Status Port::state() const {
  const auto attributes = query();
  if (!attributes) return attributes.status();
  const ibv_port_state state = attributes.value().state;
  if (state == IBV_PORT_ACTIVE) return {};
  return Status(Code::unsupported, fmt::format("port {} of {} is {}", number_, device_, ibv_port_state_str(state)));
}

Result<PortAddress> Port::address(const Settings& settings) const {
  const auto attributes = query();
  if (!attributes) return attributes.status();
  auto gids = read_gid_table(context_.get(), number_);
  if (!gids) return gids.status();
  if (gids->empty()) return Status(Code::unsupported, fmt::format("{} has no GID that a peer could use", name()));
  TUTTI_RETURN_IF_ERROR(keep_asked(*gids, settings.gid_index, name()));
  const ibv_port_attr& port = attributes.value();
  PortAddress address;
  address.name = name();
  address.is_infiniband = port.link_layer != IBV_LINK_LAYER_ETHERNET;
  address.lid = port.lid;
  address.mtu = static_cast<uint8_t>(port.active_mtu);
  // All of an InfiniBand port have the same subnet prefix, which is what counts.
  gids->resize(std::min(gids->size(), address.is_infiniband ? size_t{1} : kMostGids));
  address.gids = std::move(*gids);
  return address;
}

}  // namespace tutti::internal::verbs
