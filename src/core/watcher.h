// The one thread of a world that sleeps on descriptors: the store's connection and the transports' sockets. It accepts
// connections of peers while the program computes, hands their letters to the transport, and puts what it learns about
// dead or leaving peers into the notices. It takes no signals and never touches the data path.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

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
  // The transport has refused something: it may know of a lost peer. Any thread.
  void look();

 private:
  void run();
  struct Suspicion {
    PeerFailure failure;
    Deadline until;
  };

  int poll_ms() const;
  void put(const Event& event);
  void collect();

  Session& session_;
  Transport& transport_;
  Notices& notices_;
  int wake_fd_ = -1;
  std::atomic<bool> stop_{false};      // pairs with run(): set before the wake-up that makes it look
  std::vector<Suspicion> suspicions_;  // the thread's own
  std::thread thread_;
};

}  // namespace tutti::internal
