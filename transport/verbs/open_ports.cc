// Goes through all ports of all devices: opens those that may be used, and says why not of the others.
#include <fmt/format.h>

#include <algorithm>

#include "transport/verbs/device_filter.h"
#include "transport/verbs/port.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

class Opening {
 public:
  Opening(const Settings& settings, const DeviceFilter& filter, std::vector<PassedOver>& passed_over)
      : settings_(settings), filter_(filter), passed_over_(passed_over) {}

  // Errors: invalid_argument (the settings).
  Status add_device(const std::string& device) {
    if (!filter_.allows_some(device)) {
      pass_over(device, 0, excluded());
      return {};
    }
    auto context = open_device(device);
    ibv_device_attr attributes{};
    Status fault = context.status();
    if (fault.ok())
      if (const int error = ibv_query_device(context->get(), &attributes); error != 0)
        fault = Status::system(Code::unsupported, "ibv_query_device", error);
    if (!fault.ok()) {
      pass_over(device, 0, fault);
      return {};
    }
    TUTTI_RETURN_IF_ERROR(filter_.check_ports(device, attributes.phys_port_cnt));
    for (int number = 1; number <= attributes.phys_port_cnt; ++number) add_port(device, number);
    return {};
  }

  void pass_over(const std::string& device, int port, const Status& why) {
    passed_over_.push_back({device, port, why.message()});
    is_memory_short_ = is_memory_short_ || why.code() == Code::out_of_resources;
  }

  Result<std::vector<std::unique_ptr<Port>>> finish() {
    if (!ports_.empty()) return std::move(ports_);
    std::vector<std::string> reasons;
    for (const PassedOver& one : passed_over_)
      reasons.push_back(one.port == 0 ? fmt::format("{}: {}", one.device, one.why)
                                      : fmt::format("{}:{}: {}", one.device, one.port, one.why));
    return Status(is_memory_short_ ? Code::out_of_resources : Code::unsupported,
                  fmt::format("no RDMA port can be used: {}", fmt::join(reasons, "; ")));
  }

 private:
  static Status excluded() { return Status(Code::unsupported, "excluded by TUTTI_IB_DEVICES"); }

  void add_port(const std::string& device, int number) {
    if (!filter_.allows(device, number)) return pass_over(device, number, excluded());
    if (ports_.size() == kMaxPorts)
      return pass_over(device, number, Status(Code::unsupported, fmt::format("there are {} already", kMaxPorts)));
    auto port = Port::open(device, number, settings_);
    if (!port) return pass_over(device, number, port.status());
    ports_.push_back(std::move(*port));
  }

  const Settings& settings_;
  const DeviceFilter& filter_;
  std::vector<PassedOver>& passed_over_;
  std::vector<std::unique_ptr<Port>> ports_;
  bool is_memory_short_ = false;
};

}  // namespace

Result<std::vector<std::unique_ptr<Port>>> open_ports(const Settings& settings, std::span<const std::string> preferred,
                                                      std::vector<PassedOver>& passed_over) {
  auto filter = DeviceFilter::parse(settings.devices);
  if (!filter) return filter.status();
  const auto names = find_devices();
  if (!names) return names.status();
  std::vector<std::string> all = names.value().usable;
  all.insert(all.end(), names.value().unknown.begin(), names.value().unknown.end());
  TUTTI_RETURN_IF_ERROR(filter->check_names(all));

  Opening opening(settings, *filter, passed_over);
  for (const std::string& device : in_order(names.value().usable, preferred))
    TUTTI_RETURN_IF_ERROR(opening.add_device(device));
  for (const std::string& device : names.value().unknown)
    opening.pass_over(device, 0, Status(Code::unsupported, why_unknown(device)));
  return opening.finish();
}

}  // namespace tutti::internal::verbs
