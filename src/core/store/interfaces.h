// Which network interfaces the job uses: TUTTI_INTERFACE, and what is taken without it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/core/store/socket.h"

namespace tutti::internal {

// "eth0,ens4": these; "10.0.0.0/8,fd00::1": those with such an address, of that family; "^docker0": all but these.
// Names are exact: eth1 is neither eth10 nor eth1.100 (but eth1:0, which is an address of it).
class InterfaceChoice {
 public:
  // All.
  InterfaceChoice() = default;
  // Errors: invalid_argument, with what is allowed.
  static Result<InterfaceChoice> parse(std::string_view text);

  bool is_all() const { return items_.empty(); }
  bool admits(std::string_view interface_name, const Address& address) const;
  const std::string& text() const { return text_; }

 private:
  struct Item {
    std::string name;  // "": by address
    Address network;
    size_t prefix_bits = 0;
  };
  static Result<Item> parse_item(std::string_view text);
  static bool matches(const Item& item, std::string_view interface_name, const Address& address);

  std::string text_;
  bool excludes_ = false;
  std::vector<Item> items_;
};

// The addresses by which others can reach this machine, of its interfaces that are up and chosen, most widely reachable
// first: no link-local IPv6, and no address that every machine has (loopback, a bridge of containers) unless there is
// no other. Errors: invalid_argument, where the choice leaves none; it lists what there is.
Result<std::vector<Address>> chosen_addresses(const InterfaceChoice& choice);
// The interfaces that have them, each once, for libraries that take names.
Result<std::vector<std::string>> chosen_interfaces(const InterfaceChoice& choice);

// Whether what is sent to the address leaves by a chosen interface, or stays on this machine.
bool is_reached_by(const InterfaceChoice& choice, const Address& address);

}  // namespace tutti::internal
