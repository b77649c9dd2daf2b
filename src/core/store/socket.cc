#include "src/core/store/socket.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include "src/base/fork.h"

namespace tutti::internal {
namespace {

// A node that vanishes without a word is found after idle + probes * interval = 30 s.
constexpr int kKeepIdleSeconds = 15;
constexpr int kKeepIntervalSeconds = 5;
constexpr int kKeepProbes = 3;
constexpr int kUserTimeoutMs = 30'000;  // the same where data is under way and keep-alive rests

void set_option(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

Socket::Socket(int fd) : fd_(fd) {
  if (fd_ >= 0) close_in_child(fd_);
}

Socket::~Socket() {
  if (fd_ < 0) return;
  release_from_fork(fd_);
  close(fd_);
}

constexpr int64_t kBlindPauseUs = 1000;

short wait_for(int fd, short events, Deadline deadline) {
  constexpr int kLongestMs = 1 << 30;
  while (true) {
    pollfd item{fd, events, 0};
    const int ready = poll(&item, 1, deadline.poll_ms(kLongestMs));
    if (ready > 0) return item.revents;
    if (deadline.passed()) return 0;
    // Not interrupted: poll itself is forbidden, as by a limit of descriptors that was lowered. Whoever waits tries.
    if (ready < 0 && errno != EINTR) {
      sleep_us(kBlindPauseUs);
      return events;
    }
  }
}

void sleep_us(int64_t us) {
  timespec left{us / 1'000'000, us % 1'000'000 * 1000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

void set_connection_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

Result<Socket> connect_to(const Address& address, Deadline deadline) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      return Status::system(Code::out_of_resources, "socket for the store", errno);
    return Status(Code::timeout, fmt::format("socket for {}: {}", address.text(), reason(errno)));
  }
  const auto failed = [&](int error) {
    return Status(Code::timeout, fmt::format("connect to {}: {}", address.text(), reason(error)));
  };
  // A connect that a signal interrupts goes on by itself, as one that has only begun.
  if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return failed(errno);
    if (wait_for(socket.fd(), POLLOUT, deadline) == 0) return failed(ETIMEDOUT);
  }
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return failed(error);
  // On loopback a connect to a free port may meet itself, when the kernel picks that port for its near end.
  if (local_address(socket.fd()) == remote_address(socket.fd())) return failed(ECONNREFUSED);
  set_connection_options(socket.fd());
  return socket;
}

}  // namespace tutti::internal
