// A rank that this one has something to do with. `state` is written by the connector and by the owner; what stands
// below it is the owner's.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "src/base/clock.h"
#include "transport/receives.h"
#include "transport/ucx/address.h"
#include "transport/ucx/library.h"

namespace tutti::internal::ucx {

enum class PeerState : uint8_t {
  asking,  // it may send to us; whether it takes what we send is not known yet
  connected,
  left,    // it has said goodbye, and all that it sent has come
  failed,  // it is gone, or its connection was closed
};

struct Peer : Correspondent {
  explicit Peer(Address its_address) : address(std::move(its_address)) {}

  PeerState current() const { return state.load(std::memory_order_relaxed); }  // the state alone matters
  bool is_connected() const { return current() == PeerState::connected; }
  // Whether UCX is done with connecting it, one way or the other.
  bool was_wired() const { return is_wired || received > 0 || error != UCS_OK; }

  const Address address;
  std::atomic<PeerState> state{PeerState::asking};
  std::atomic<bool> is_out_of_reach{false};  // it has left or died, as others say

  ucp_ep_h endpoint = nullptr;  // made on first use
  bool tells_of_death = false;  // its endpoint does
  ucs_status_t error = UCS_OK;  // what UCX says of it
  bool is_wired = false;        // UCX has connected it
  uint64_t sent = 0;            // messages, of any kind
  uint64_t received = 0;
  std::optional<uint64_t> last;      // from its goodbye: so many it has sent
  uint32_t waiting = 0;              // short messages that UCX has not sent yet
  bool is_closed = false;            // its endpoint is, for good
  std::optional<Deadline> patience;  // out of reach: so long something of it may still be on its way
};

}  // namespace tutti::internal::ucx
