// What a rank tells its peers through the store so that they can connect to it. Parsed from outside: lengths and every
// field are checked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace tutti::internal::shm {

struct Address {
  std::array<char, 36> boot_id{};      // of the kernel; zeros where it cannot be read
  uint64_t network_namespace = 0;      // abstract sockets live in it; 0: unknown
  uint64_t nonce = 0;                  // of the rank's region
  std::array<char, 24> socket_name{};  // abstract, without the leading zero byte
  int32_t rank = -1;
  int32_t pid = 0;  // in the rank's own PID namespace: for messages only
  uint32_t uid = 0;

  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

// This process's, with a new random socket name.
Address own_address(int rank, uint64_t nonce);

// Of its socket.
std::string_view name_of(const Address& address);

// Whether the kernel at the other end is ours and its sockets are in our namespace; unsupported with the reason if not.
Status same_node(const Address& own, const Address& peer);

}  // namespace tutti::internal::shm
