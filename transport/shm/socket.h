// Unix sockets as the handshake needs them: abstract names, whole packets, descriptors passed along, the peer's
// credentials. Calls never block unless a deadline is given, and survive signals.
#pragma once

#include <sys/types.h>

#include <array>
#include <span>
#include <string_view>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "transport/shm/unique_fd.h"

namespace tutti::internal::shm {

struct PeerCredentials {
  pid_t pid = 0;  // 0: not visible from our PID namespace
  uid_t uid = 0;
};

inline constexpr size_t kMaxPassedFds = 2;

// A packet that came, with its descriptors.
struct Received {
  ssize_t bytes = 0;  // 0: the other end is closed; -1: see error
  int error = 0;
  std::array<UniqueFd, kMaxPassedFds> fds;
};

Result<UniqueFd> listen_abstract(std::string_view name, int backlog);
// peer_failed when nobody listens there.
Result<UniqueFd> connect_abstract(std::string_view name, Deadline deadline);
Result<PeerCredentials> credentials_of(int socket);
// A descriptor that stands for nothing; none where there is none left.
UniqueFd open_spare();

// 0 or errno.
int send_packet(int socket, std::span<const std::byte> packet, std::span<const int> fds);
Received receive_packet(int socket, std::span<std::byte> packet);
// False when the deadline passed first.
bool wait_readable(int socket, Deadline deadline);

}  // namespace tutti::internal::shm
