#include "transport/verbs/device_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tutti::internal::verbs {
namespace {

constexpr int kMostPorts = 255;

Status refused(std::string_view text, std::string_view why) {
  return Status(
      Code::invalid_argument,
      fmt::format("TUTTI_IB_DEVICES is '{}': {}; it must be names as in mlx5_0,mlx5_1:1 (device:port), or, with "
                  "a ^ before the first, those not to use",
                  text, why));
}

// 0: no port's number.
int parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= kMostPorts ? port : 0;
}

}  // namespace

Result<DeviceFilter> DeviceFilter::parse(std::string_view text) {
  DeviceFilter filter;
  if (text.empty()) return filter;
  filter.excludes_ = text[0] == '^';
  for (std::string_view rest = text.substr(filter.excludes_ ? 1 : 0);;) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t colon = item.find(':');
    Entry entry{std::string(item.substr(0, colon)), 0};
    if (entry.device.empty()) return refused(text, "a name is missing");
    if (entry.device.find_first_of("^ \t") != std::string::npos)
      return refused(text, fmt::format("'{}' is no name", entry.device));
    if (colon != std::string_view::npos) {
      entry.port = parse_port(item.substr(colon + 1));
      if (entry.port == 0) return refused(text, fmt::format("'{}' is no port", item.substr(colon + 1)));
    }
    filter.entries_.push_back(std::move(entry));
    if (comma == std::string_view::npos) return filter;
    rest.remove_prefix(comma + 1);
  }
}

bool DeviceFilter::allows(std::string_view device, int port) const {
  if (entries_.empty()) return true;
  const bool is_named = std::ranges::any_of(
      entries_, [&](const Entry& entry) { return entry.device == device && (entry.port == 0 || entry.port == port); });
  return is_named != excludes_;
}

bool DeviceFilter::allows_some(std::string_view device) const {
  if (entries_.empty()) return true;
  const auto names = [&](const Entry& entry) { return entry.device == device && (!excludes_ || entry.port == 0); };
  return std::ranges::any_of(entries_, names) != excludes_;
}

Status DeviceFilter::check_names(std::span<const std::string> devices) const {
  for (const Entry& entry : entries_)
    if (std::ranges::find(devices, entry.device) == devices.end())
      return Status(Code::invalid_argument,
                    fmt::format("TUTTI_IB_DEVICES names {}, which is no RDMA device here; there are: {}", entry.device,
                                fmt::join(devices, ", ")));
  return {};
}

Status DeviceFilter::check_ports(std::string_view device, int port_count) const {
  for (const Entry& entry : entries_)
    if (entry.device == device && entry.port > port_count)
      return Status(Code::invalid_argument,
                    fmt::format("TUTTI_IB_DEVICES names port {} of {}, which has {}", entry.port, device, port_count));
  return {};
}

std::vector<std::string> in_order(std::span<const std::string> devices, std::span<const std::string> preferred) {
  std::vector<std::string> result(devices.begin(), devices.end());
  std::ranges::stable_sort(
      result, {}, [&](const std::string& device) { return std::ranges::find(preferred, device) - preferred.begin(); });
  return result;
}

}  // namespace tutti::internal::verbs
