#include "src/core/store/interfaces.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

namespace tutti::internal {
namespace {

// 0 for what others reach from everywhere, more for less.
int narrowness(const Address& address) { return address.is_loopback() ? 2 : address.is_link_local() ? 1 : 0; }

// A bridge without a device of its own, such as docker0: it joins this machine's containers, and its address
// (172.17.0.1) is every other machine's too.
bool is_inner_bridge(const std::string& name) {
  const std::filesystem::path device = "/sys/class/net/" + name;
  std::error_code error;
  if (!std::filesystem::exists(device / "bridge", error)) return false;
  for (const auto& port : std::filesystem::directory_iterator(device / "brif", error))
    if (std::filesystem::exists("/sys/class/net" / port.path().filename() / "device", error)) return false;
  return true;
}

struct Found {
  std::string interface_name;
  Address address;
};

std::vector<Found> all_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<Found> found;
  for (const ifaddrs* item = list; item; item = item->ifa_next) {
    if (!item->ifa_addr || !(item->ifa_flags & IFF_UP)) continue;
    const int family = item->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Found one{item->ifa_name, {}};
    one.address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&one.address.storage, item->ifa_addr, one.address.length);
    found.push_back(std::move(one));
  }
  return found;
}

std::string describe(const std::vector<Found>& all) {
  std::vector<std::string> names, texts;
  for (const Found& one : all) {
    const auto known = std::ranges::find(names, one.interface_name);
    if (known == names.end()) {
      names.push_back(one.interface_name);
      texts.push_back(one.address.host());
    } else {
      texts[static_cast<size_t>(known - names.begin())] += ", " + one.address.host();
    }
  }
  for (size_t i = 0; i < names.size(); ++i) names[i] += fmt::format(" ({})", texts[i]);
  return names.empty() ? "none that is up" : fmt::format("{}", fmt::join(names, ", "));
}

Result<std::vector<Found>> find_chosen(const InterfaceChoice& choice) {
  const std::vector<Found> all = all_addresses();
  std::vector<Found> outward, own_only;
  for (const Found& one : all) {
    // A link-local IPv6 address means something else on each machine.
    if (one.address.family() == AF_INET6 && one.address.is_link_local()) continue;
    if (!choice.admits(one.interface_name, one.address)) continue;
    const bool leads_out = !one.address.is_loopback() && !is_inner_bridge(one.interface_name);
    (leads_out ? outward : own_only).push_back(one);
  }
  // Without a network there is this machine alone, and these are its addresses.
  if (outward.empty()) outward = std::move(own_only);
  if (outward.empty() && !choice.is_all())
    return Status(
        Code::invalid_argument,
        fmt::format("TUTTI_INTERFACE={} leaves no interface of this machine; it has {}", choice.text(), describe(all)));
  std::ranges::stable_sort(outward, {}, [](const Found& one) { return narrowness(one.address); });
  return outward;
}

const unsigned char* bytes_of(const Address& address) {
  if (address.family() == AF_INET)
    return reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr);
  return reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr.s6_addr;
}

bool has_prefix(const Address& address, const Address& network, size_t bits) {
  if (address.family() != network.family()) return false;
  const unsigned char* a = bytes_of(address);
  const unsigned char* b = bytes_of(network);
  if (std::memcmp(a, b, bits / 8) != 0) return false;
  const auto rest = static_cast<unsigned char>(0xff00 >> bits % 8);
  return bits % 8 == 0 || (a[bits / 8] & rest) == (b[bits / 8] & rest);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

Result<InterfaceChoice> InterfaceChoice::parse(std::string_view text) {
  InterfaceChoice choice;
  std::string_view rest = trim(text);
  choice.text_ = rest;
  if (rest.empty()) return choice;
  choice.excludes_ = rest.front() == '^';
  if (choice.excludes_) rest.remove_prefix(1);
  while (true) {
    const size_t comma = rest.find(',');
    auto item = parse_item(trim(rest.substr(0, comma)));
    if (!item)
      return Status(
          Code::invalid_argument,
          fmt::format("TUTTI_INTERFACE is '{}': {}; it must be a list of interfaces, networks and addresses, as "
                      "in eth0,10.0.0.0/8,fd00::1, and ^ before the list means all others",
                      text, item.status().message()));
    choice.items_.push_back(std::move(*item));
    if (comma == std::string_view::npos) return choice;
    rest = rest.substr(comma + 1);
  }
}

Result<InterfaceChoice::Item> InterfaceChoice::parse_item(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Status(Code::invalid_argument, fmt::format("'{}' {}", text, why));
  };
  const size_t slash = text.find('/');
  Item item;
  item.network = numeric_address(std::string(text.substr(0, slash)), 0);
  if (item.network.length == 0) {
    if (slash != std::string_view::npos || text.find(':') != std::string_view::npos) return bad("is no network");
    if (text.empty() || text.size() >= IFNAMSIZ || text.find_first_of("^ \t") != std::string_view::npos)
      return bad("names no interface");
    item.name = text;
    return item;
  }
  const size_t most = item.network.family() == AF_INET ? 32 : 128;
  item.prefix_bits = most;
  if (slash == std::string_view::npos) return item;
  const std::string_view bits = text.substr(slash + 1);
  const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), item.prefix_bits);
  if (error != std::errc() || end != bits.data() + bits.size() || item.prefix_bits > most)
    return bad(fmt::format("is no network: after / stands a number from 0 to {}", most));
  return item;
}

bool InterfaceChoice::matches(const Item& item, std::string_view interface_name, const Address& address) {
  if (item.name.empty()) return has_prefix(address, item.network, item.prefix_bits);
  return interface_name.substr(0, interface_name.find(':')) == item.name;
}

bool InterfaceChoice::admits(std::string_view interface_name, const Address& address) const {
  const bool is_named =
      std::ranges::any_of(items_, [&](const Item& item) { return matches(item, interface_name, address); });
  return is_all() || is_named != excludes_;
}

Result<std::vector<Address>> chosen_addresses(const InterfaceChoice& choice) {
  auto found = find_chosen(choice);
  TUTTI_RETURN_IF_ERROR(found.status());
  std::vector<Address> addresses;
  for (const Found& one : *found) addresses.push_back(one.address);
  return addresses;
}

Result<std::vector<std::string>> chosen_interfaces(const InterfaceChoice& choice) {
  auto found = find_chosen(choice);
  TUTTI_RETURN_IF_ERROR(found.status());
  std::vector<std::string> names;
  for (const Found& one : *found) {
    const std::string name = one.interface_name.substr(0, one.interface_name.find(':'));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

bool is_reached_by(const InterfaceChoice& choice, const Address& address) {
  if (choice.is_all() || address.is_loopback()) return true;
  const Address near = source_towards(address);
  if (near.length == 0) return false;
  return std::ranges::any_of(all_addresses(), [&](const Found& one) {
    return one.address.host() == near.host() && choice.admits(one.interface_name, one.address);
  });
}

}  // namespace tutti::internal
