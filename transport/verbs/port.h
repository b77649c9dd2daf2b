// One active port of one RDMA device, opened: what all queue pairs on it share. And which ports there are, with the
// reason for each that is not used. Any thread after it is made.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transport/verbs/address.h"
#include "transport/verbs/async_event.h"
#include "transport/verbs/devices.h"
#include "transport/verbs/settings.h"

namespace tutti::internal::verbs {

struct PassedOver {
  std::string device;
  int port = 0;  // 0: the device as a whole
  std::string why;
};

class Port {
 public:
  // Opens the port and proves it by a queue pair that is made and taken back. Errors: unsupported, out_of_resources
  // (with the locked-memory limit and the value needed, where that is it), invalid_argument (no GID as the settings
  // ask).
  static Result<std::unique_ptr<Port>> open(const std::string& device, int number, const Settings& settings);
  // In a child made by fork it leaves the parent's alone.
  ~Port();

  const std::string& device() const { return device_; }
  int number() const { return number_; }
  std::string name() const;  // "mlx5_0:1"
  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_; }
  const ibv_device_attr& device_attributes() const { return device_attributes_; }
  const ibv_port_attr& attributes() const { return attributes_; }  // as they were when it was opened

  // What peers need to know of this port. The GID table is read again, since it changes. Errors: unsupported,
  // invalid_argument (TUTTI_IB_GID_INDEX, with the indexes that there are).
  Result<PortAddress> address(const Settings& settings) const;
  // Whether it is still active; the reason where it is not.
  Status state() const;
  // The device's next event; see async_event.h. Its descriptor, for whoever sleeps: context()->async_fd.
  AsyncEvent take_event() const { return async_event(context_.get(), device_, number_); }

 private:
  Port(std::string device, int number, ContextPtr context);
  Status start();
  Result<ibv_port_attr> query() const;

  std::string device_;
  int number_;
  ContextPtr context_;
  ibv_pd* domain_ = nullptr;
  ibv_device_attr device_attributes_{};
  ibv_port_attr attributes_{};
};

// Every port that is active and that the settings allow, in the order of `preferred` (device names, from topology) and
// then in the system's; no more than an address holds. `passed_over` gets the others, on errors too. Errors:
// invalid_argument (a name in the settings that is no device here: with those that are), unsupported (no RDMA stack
// here, or nothing usable: with the reason for each device), out_of_resources (the same, where all that is missing is
// memory that may be locked).
Result<std::vector<std::unique_ptr<Port>>> open_ports(const Settings& settings, std::span<const std::string> preferred,
                                                      std::vector<PassedOver>& passed_over);

}  // namespace tutti::internal::verbs
