// Who is no rank: services that hold a port, and connections that want nothing good. They run on a thread of their own
// and end with their object.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "src/core/store/listener.h"
#include "src/core/store/socket.h"
#include "tests/free_port.h"

namespace tutti::internal {

using tutti_test::free_port;

// A service that is no store.
class Foreign {
 public:
  enum class Manner {
    http,      // waits for a line, then answers with an error page
    all_ones,  // sends 16 bytes 0xff at once
    silent,    // takes what comes and says nothing
    closing,   // closes every connection at once
    banner,    // speaks first, as mail servers do
  };
  Foreign(uint16_t port, Manner manner);
  ~Foreign();

 private:
  void run();
  void answer(Socket socket);

  const Manner manner_;
  Listeners listeners_;
  std::vector<Socket> kept_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Connects to a port again and again and misbehaves in turn: closes, resets, sends three bytes, sends rubbish, sends a
// right beginning and a huge length, says nothing and stays.
class Nuisance {
 public:
  Nuisance(uint16_t port, uint64_t seed);
  ~Nuisance();
  int connections() const { return connections_; }

 private:
  void run();
  void annoy(Socket socket, uint64_t how);

  const uint16_t port_;
  uint64_t random_;
  std::vector<Socket> kept_;
  std::atomic<int> connections_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tutti::internal
