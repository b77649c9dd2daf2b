#include "store_stranger.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <stdexcept>
#include <string_view>

#include "src/core/store/handshake.h"

namespace tutti::internal {
namespace {

constexpr int64_t kStepUs = 20'000;  // how soon a stranger notices that its object ends

void send_text(const Socket& socket, std::string_view text) {
  if (send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL) < 0) return;  // the other end has had enough
}

}  // namespace

Foreign::Foreign(uint16_t port, Manner manner) : manner_(manner) {
  Listening listening = listen_on(port, Reach::loopback);
  if (!listening.ok()) throw std::runtime_error(listening.status().message());
  listeners_ = std::move(listening.listeners);
  thread_ = std::thread([this] { run(); });
}

Foreign::~Foreign() {
  stop_ = true;
  thread_.join();
}

void Foreign::run() {
  while (!stop_) {
    for (const Socket& listener : listeners_.sockets) {
      if (wait_for(listener.fd(), POLLIN, Deadline::after_us(kStepUs)) == 0) continue;
      answer(Socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC)));
    }
  }
}

void Foreign::answer(Socket socket) {
  if (!socket || manner_ == Manner::closing) return;
  if (manner_ == Manner::all_ones) send_text(socket, std::string(16, '\xff'));
  if (manner_ == Manner::banner) send_text(socket, "220 mail.example ESMTP\r\n");
  if (manner_ == Manner::http) {
    char line[256];
    if (wait_for(socket.fd(), POLLIN, Deadline::after_us(1'000'000)) != 0 &&
        recv(socket.fd(), line, sizeof line, 0) > 0)
      send_text(socket, "HTTP/1.0 400 Bad request\r\n\r\n<html>no</html>");
    return;
  }
  kept_.push_back(std::move(socket));
}

Nuisance::Nuisance(uint16_t port, uint64_t seed) : port_(port), random_(seed | 1) {
  thread_ = std::thread([this] { run(); });
}

Nuisance::~Nuisance() {
  stop_ = true;
  thread_.join();
}

void Nuisance::run() {
  const Address address = numeric_address("127.0.0.1", port_);
  while (!stop_) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    sleep_us(200);
    auto socket = connect_to(address, Deadline::after_us(100'000));
    if (socket)
      annoy(std::move(*socket), random_ >> 33);
    else
      sleep_us(1000);
  }
}

void Nuisance::annoy(Socket socket, uint64_t how) {
  connections_.fetch_add(1);
  switch (how % 7) {
    case 0: return;  // closes
    case 1: {
      const linger reset{1, 0};
      setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      return;
    }
    case 2: send_text(socket, "abc"); return;
    case 3: send_text(socket, std::string(8, static_cast<char>(how))); break;
    case 4: send_text(socket, greeting(fresh_nonce()) + std::string(4096, '\xff')); break;
    case 5: send_text(socket, greeting(fresh_nonce())); break;
    default: break;  // says nothing
  }
  kept_.push_back(std::move(socket));
  if (kept_.size() > 300) kept_.clear();
}

}  // namespace tutti::internal
