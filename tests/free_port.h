// A TCP port for a test to listen on a moment later.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace tutti_test {

// A port of 127.0.0.1 that nobody listens on. Below the ports that the kernel hands out by itself, and from a stretch
// of the process's own, so that neither a connection nor a test beside this one takes it meanwhile.
inline uint16_t free_port() {
  constexpr uint32_t kFirst = 10'000, kPorts = 22'000, kStretch = 64;
  static std::atomic<uint32_t> next{static_cast<uint32_t>(getpid()) * kStretch};
  for (uint32_t tries = 0; tries < kPorts; ++tries) {
    const auto port = static_cast<uint16_t>(kFirst + next++ % kPorts);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    if (free) return port;
  }
  throw std::runtime_error("no free TCP port on 127.0.0.1");
}

}  // namespace tutti_test
