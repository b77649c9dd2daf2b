// Connects to peers on first use: chooses the way (see wiring.h), and waits for what comes of it.
//
// connect() runs on any thread, deliver() and serve() on the watch thread. If both ends ask each other at once, the
// lower rank's question is answered and the other's is dropped.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "src/base/clock.h"
#include "transport/transport.h"
#include "transport/verbs/cm.h"
#include "transport/verbs/connections.h"
#include "transport/verbs/letters.h"
#include "transport/verbs/listeners.h"

namespace tutti::internal::verbs {

class Connector {
 public:
  // `queues`: by port. `listeners`: null, or those that `own` tells of.
  Connector(Address own, int world_size, std::span<const std::unique_ptr<Queues>> queues, const Settings& settings,
            Mail& mail, std::unique_ptr<Listeners> listeners);

  const Address& own() const { return connections_.own(); }
  const Settings& settings() const { return connections_.settings(); }

  // Errors: peer_failed, timeout, unsupported, out_of_resources, mismatch (an address of another rank).
  Status connect(int rank, std::string_view address, Deadline deadline);
  void deliver(int rank, std::string_view letter) { letters_.deliver(rank, letter); }
  // Where rdma_cm may connect too, it finds that out itself.
  void gets_no_letters(int rank) {
    if (!cm_) letters_.end(rank);
  }
  // Readable when there is something to serve; -1: there never is.
  int fd() const { return cm_ ? cm_->fd() : -1; }
  void serve() {
    if (cm_) cm_->serve();
  }

  // As in Connections.
  Peer* peer(int rank) const { return connections_.peer(rank); }
  std::span<Peer* const> peers() const { return connections_.peers(); }
  std::atomic<bool>& alarm() { return connections_.alarm(); }
  void fail(Peer& peer, std::string reason) { connections_.fail(peer, std::move(reason)); }
  Failures& failures() { return connections_.failures(); }

 private:
  Status ask(int rank, std::string_view address, Deadline deadline, std::unique_lock<std::mutex>& lock);

  Connections connections_;
  Letters letters_;
  std::unique_ptr<Cm> cm_;
};

}  // namespace tutti::internal::verbs
