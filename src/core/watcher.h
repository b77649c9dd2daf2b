// The one thread of a world that sleeps on descriptors: the store's connection and the transports' sockets. It accepts
// connections of peers while the program computes, and puts what it learns about dead or leaving peers into the
// notices. It takes no signals and never touches the data path.
#pragma once

#include <string>
#include <thread>

#include "src/core/notices.h"
#include "src/core/store/session.h"
#include "transport/transport.h"

namespace tutti::internal {

class Watcher {
 public:
  Watcher(Session& session, Transport& transport, Notices& notices)
      : session_(session), transport_(transport), notices_(notices) {}
  ~Watcher() { stop(); }

  Status start();
  // Ends the thread; idempotent.
  void stop();

 private:
  void run();
  void put(const Event& event);
  void collect();

  Session& session_;
  Transport& transport_;
  Notices& notices_;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace tutti::internal
