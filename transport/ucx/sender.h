// Hands messages to UCX, and keeps what UCX still needs of them until it is done: frames, and copies of short messages.
// Owner's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/list.h"
#include "transport/transport.h"
#include "transport/ucx/connector.h"
#include "transport/ucx/peer.h"
#include "transport/ucx/wire.h"
#include "transport/ucx/worker.h"

namespace tutti::internal::ucx {

// Who wants to know what became of what was not sent at once. `what`: as given with it.
class SentListener {
 public:
  virtual ~SentListener() = default;
  // Not ok: the peer has failed. UCX has done with the memory either way.
  virtual void on_message_sent(void* what, bool ok) = 0;
  virtual void on_data_sent(void* what, bool ok) = 0;
};

enum class Sent : uint8_t {
  now,     // its memory is free
  later,   // the listener will be told
  failed,  // the peer has failed
};

// Data that travels with a frame.
struct Load {
  const std::byte* data = nullptr;
  size_t bytes = 0;
  void* what = nullptr;  // for the listener
};

class Sender {
 public:
  // All outlive it.
  Sender(Worker& worker, Connector& connector, SentListener& listener);

  // Makes the peer's endpoint, where there is none. False: the peer has failed.
  bool prepare(Peer& peer);
  // Whether UCX has not done with something yet.
  bool is_busy() const { return outstanding_ > 0; }
  bool has_room(const Peer& peer) const { return peer.waiting < kMostWaiting; }

  template <class Body>
  void control(Peer& peer, Kind kind, const Tag& tag, const Body& body) {
    Slot& slot = take(peer, kind, tag);
    slot.frame.put(body);
    send(peer, slot, {});
  }
  // At most kShortBytes, copied. The listener hears of `what` when it is sent, unless that is now.
  Sent message(Peer& peer, const Tag& tag, const Load& load);
  // From where it lies; UCX may take it by its rendezvous, but for what is to come whole.
  Sent data(Peer& peer, const Tag& tag, const DataBody& body, const Load& load, bool whole);

  // Nothing more goes to the peer or comes from it, and what UCX still holds for it is given back soon.
  void close(Peer& peer);
  // Null: nothing is left to be sent to the peer. Else for ucp_request_check_status.
  void* flush_and_close(Peer& peer);

 private:
  struct Slot : Links<Slot> {
    Sender* sender = nullptr;
    Peer* peer = nullptr;
    void* what = nullptr;
    Frame frame;
    std::array<std::byte, kShortBytes> copy;
  };

  ucs_status_t create_endpoint(Peer& peer, ucp_err_handling_mode_t mode);
  Slot& take(Peer& peer, Kind kind, const Tag& tag);
  Sent send(Peer& peer, Slot& slot, const Load& load, bool whole = true);
  static void on_sent(void* request, ucs_status_t status, void* slot);
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  Worker& worker_;
  Connector& connector_;
  SentListener& listener_;
  Pool<Slot> slots_;
  size_t outstanding_ = 0;  // slots that UCX has not done with
};

}  // namespace tutti::internal::ucx
