#include "transport/shm/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tutti::internal::shm {
namespace {

constexpr int kType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

struct AbstractName {
  sockaddr_un address{};
  socklen_t length = 0;

  explicit AbstractName(std::string_view name) {
    address.sun_family = AF_UNIX;  // sun_path[0] stays 0: abstract
    const size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

void sleep_ms(int ms) { (void)poll(nullptr, 0, ms); }

}  // namespace

Result<UniqueFd> listen_abstract(std::string_view name, int backlog) {
  UniqueFd fd(socket(AF_UNIX, kType, 0));
  if (!fd) return Status::system(Code::out_of_resources, "socket(AF_UNIX) to listen for peers on this node", errno);
  const AbstractName at(name);
  if (bind(fd.get(), at.get(), at.length) != 0 || listen(fd.get(), backlog) != 0)
    return Status::system(Code::out_of_resources, fmt::format("listening on the abstract Unix socket {}", name), errno);
  return fd;
}

Result<UniqueFd> connect_abstract(std::string_view name, Deadline deadline) {
  UniqueFd fd(socket(AF_UNIX, kType, 0));
  if (!fd) return Status::system(Code::out_of_resources, "socket(AF_UNIX) to connect to a peer on this node", errno);
  const AbstractName at(name);
  while (connect(fd.get(), at.get(), at.length) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN)
      return Status::system(Code::peer_failed, fmt::format("connecting to the abstract Unix socket {}", name), errno);
    if (deadline.passed())
      return Status(Code::timeout, fmt::format("the abstract Unix socket {} takes no more connections", name));
    sleep_ms(1);  // its backlog is full
  }
  return fd;
}

UniqueFd open_spare() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

Result<PeerCredentials> credentials_of(int socket) {
  ucred found{};
  socklen_t length = sizeof found;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &length) != 0)
    return Status::system(Code::internal, "getsockopt(SO_PEERCRED) of a peer on this node", errno);
  return PeerCredentials{found.pid, found.uid};
}

int send_packet(int socket, std::span<const std::byte> packet, std::span<const int> fds) {
  iovec data{const_cast<std::byte*>(packet.data()), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxPassedFds)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  while (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    if (errno != EINTR) return errno;
  return 0;
}

Received receive_packet(int socket, std::span<std::byte> packet) {
  Received received;
  iovec data{packet.data(), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxPassedFds)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  do {
    received.bytes = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received.bytes < 0 && errno == EINTR);
  if (received.bytes < 0) {
    received.error = errno;
    return received;
  }
  size_t taken = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      UniqueFd owned(fd);  // closed when it is one too many
      if (taken < received.fds.size()) received.fds[taken++] = std::move(owned);
    }
  }
  return received;
}

bool wait_readable(int socket, Deadline deadline) {
  pollfd entry{socket, POLLIN, 0};
  for (;;) {
    const int ready = poll(&entry, 1, deadline.poll_ms(1000));
    if (ready > 0) return true;
    if (ready == 0 && deadline.passed()) return false;
    if (ready < 0 && errno != EINTR) return true;  // the next call on the socket will tell
  }
}

}  // namespace tutti::internal::shm
