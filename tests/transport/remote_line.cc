#include "tests/transport/remote_line.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "src/base/clock.h"

namespace tutti::internal::conformance {
namespace {

// The longest a call takes: connect, with its deadline of 20 s.
constexpr timeval kPatience{.tv_sec = 60, .tv_usec = 0};
constexpr int64_t kPatienceToReachUs = 60'000'000;
constexpr int kSilentSeconds = 20;
constexpr Frame::Length kLongestFrame = 64 << 20;

[[noreturn]] void fail(const char* what) { give_up(std::string(what) + ": " + std::strerror(errno)); }

void set(int fd, int level, int option, const auto& value) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0) fail("setsockopt");
}

UniqueFd new_socket() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail("socket");
  return fd;
}

// Whether all came; nothing may come only in part.
bool receive_all(int fd, std::span<std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = recv(fd, bytes.data() + done, bytes.size() - done, 0);
    if (count < 0 && errno != EINTR) fail("recv from the other guest");
    if (count == 0 && done == 0) return false;
    if (count == 0) give_up("the other guest went away in the middle of a frame");
    if (count > 0) done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

Line::Line(UniqueFd fd) : fd_(std::move(fd)) {
  set(fd_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  // An end whose guest is gone without a word.
  set(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd_.get(), IPPROTO_TCP, TCP_KEEPIDLE, kSilentSeconds / 2);
  set(fd_.get(), IPPROTO_TCP, TCP_KEEPINTVL, kSilentSeconds / 4);
  set(fd_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, kSilentSeconds * 1000);
}

Line Line::to(const std::string& ip, uint16_t port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
  if (inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1) give_up("'" + ip + "' is no IPv4 address");
  for (const Deadline deadline = Deadline::after_us(kPatienceToReachUs);;) {
    UniqueFd fd = new_socket();
    set(fd.get(), SOL_SOCKET, SO_RCVTIMEO, kPatience);
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return Line(std::move(fd));
    if (errno != ECONNREFUSED || deadline.passed()) fail(("connect to " + ip).c_str());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void Line::send(Frame frame) {
  for (auto rest = frame.encoded(); !rest.empty();) {
    const ssize_t count = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) fail("send to the other guest");
    if (count > 0) rest = rest.subspan(static_cast<size_t>(count));
  }
}

std::optional<Reader> Line::receive() {
  Frame::Length length = 0;
  if (!receive_all(fd_.get(), std::as_writable_bytes(std::span(&length, 1)))) return std::nullopt;
  if (length > kLongestFrame) give_up("a frame of " + std::to_string(length) + " bytes");
  std::vector<std::byte> frame(length);
  if (!receive_all(fd_.get(), frame)) give_up("the other guest went away in the middle of a frame");
  return Reader(std::move(frame));
}

Reader Line::receive_answer() {
  auto answer = receive();
  if (!answer) give_up("the other guest went away");
  return std::move(*answer);
}

void Line::finish() { shutdown(fd_.get(), SHUT_WR); }

LineListener::LineListener(uint16_t port) : fd_(new_socket()) {
  const sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {INADDR_ANY}, .sin_zero = {}};
  if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("bind");
  if (listen(fd_.get(), SOMAXCONN) != 0) fail("listen");
}

Line LineListener::accept() {
  UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) fail("accept");
  return Line(std::move(fd));
}

}  // namespace tutti::internal::conformance
