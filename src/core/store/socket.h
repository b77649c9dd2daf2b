// TCP sockets as the store uses them: one owner each, never inherited by children, non-blocking, safe against signals.
// Only src/core/store includes this. Any thread.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"

namespace tutti::internal {

// A descriptor with one owner. Children made by fork do not keep it: peers take its closing for this process's end.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd);
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// An IPv4 or IPv6 address with a port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  uint16_t port() const;
  Address with_port(uint16_t port) const;
  // An IPv4 address that arrived on an IPv6 socket, as IPv4.
  Address unmapped() const;
  bool is_loopback() const;
  bool is_link_local() const;
  // "127.0.0.1", "fd00::1"; text(): "127.0.0.1:80", "[fd00::1]:80".
  std::string host() const;
  std::string text() const;
  bool operator==(const Address& other) const { return text() == other.text(); }
};

// A numeric address, else nothing but an empty `length`.
Address numeric_address(const std::string& host, uint16_t port);
// Both ends of a connected socket.
Address local_address(int fd);
Address remote_address(int fd);
// The own address from which something sent there would come; length 0 where no way leads there.
Address source_towards(const Address& address);
// Whether this machine has the address.
bool is_own_address(const Address& address);
// What a name means. `kind` says what the caller can expect of another try.
struct Resolved {
  enum class Kind { ok, temporary, unknown };
  Kind kind = Kind::ok;
  std::vector<Address> addresses;
  std::string error;
};
Resolved resolve(const std::string& host, uint16_t port);

// Connects within the time. A failure's message names the address and the system's reason; out_of_resources where this
// process is at its limit, timeout for everything that another try may mend.
Result<Socket> connect_to(const Address& address, Deadline deadline);

// Waits until the descriptor has one of the events or the time is over; signals do not disturb. What poll gave, or 0.
short wait_for(int fd, short events, Deadline deadline);

// Sleeps; signals do not shorten it.
void sleep_us(int64_t us);

// Sets what every connection of the store has: no delay, and keep-alive that finds a vanished node in half a minute.
void set_connection_options(int fd);

}  // namespace tutti::internal
