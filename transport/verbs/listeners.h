// Where other ranks can ask this one for connections by rdma_cm: one listener on each port that has an IP address.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/gid.h"
#include "src/base/status.h"
#include "transport/verbs/address.h"
#include "transport/verbs/cm_channel.h"
#include "transport/verbs/gid_table.h"
#include "transport/verbs/port.h"

namespace tutti::internal::verbs {

class Listeners {
 public:
  // Listens where `address`, whose ports are these, says that rdma_cm is wanted, else where nothing but it may work: on
  // InfiniBand ports with a subnet prefix of their own, as far as it goes. Writes into `address` where that is; a port
  // that is wanted to listen is known by no other GIDs than those of the listener. Null: nowhere. Errors: unsupported,
  // with the reasons (only where rdma_cm is wanted).
  static Result<std::unique_ptr<Listeners>> open(std::span<const std::unique_ptr<Port>> ports, Address& address);

  const CmChannel& channel() const { return *channel_; }
  // Its device is gone.
  void close(int port) { ids_[static_cast<size_t>(port)].reset(); }

 private:
  explicit Listeners(std::unique_ptr<CmChannel> channel) : channel_(std::move(channel)) {}
  Status listen(const Port& port, size_t index, PortAddress& address);

  std::unique_ptr<CmChannel> channel_;
  std::vector<CmId> ids_;  // by port
};

// The GID of an IPoIB device, by its link-layer address "80:00:02:08:fe:80:..." of 20 bytes; nothing: it is none.
std::optional<GidBytes> gid_of_ipoib(std::string_view link_address);

// The IP address that rdma_cm finds the port by: of RoCE, the best of its GIDs that is one; of InfiniBand, that of the
// port's IPoIB device, of which `addresses` are this host's. Nothing: it has none.
std::optional<GidBytes> ip_of(const PortAddress& port, std::span<const NetAddress> addresses);

}  // namespace tutti::internal::verbs
