// Who is connected, who was, and with whom it is under way: the table of peers, and the letters by which they get
// there. To be connected is to know each other's address and to know that the other is there; UCX's own connection is
// made when the first message goes.
//
// connect() runs on any thread, deliver() on the watch thread. The owner reads the table without the mutex: an entry is
// published once, complete, and stays until destruction.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "transport/failures.h"
#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/letter.h"
#include "transport/ucx/peer.h"

namespace tutti::internal::ucx {

class Connector {
 public:
  // `mail` outlives it.
  Connector(Address own, int world_size, Mail& mail);

  const Address& own() const { return own_; }

  // Errors: peer_failed, timeout, invalid_argument (no address), mismatch (of another rank).
  Status connect(int rank, std::string_view address, Deadline deadline);
  void deliver(int rank, std::string_view letter);
  void gets_no_letters(int rank);

  // Null where nothing is known of it.
  Peer* peer(int rank) const {
    if (!is_rank(rank)) return nullptr;
    // pairs with publish: acquire, so that the peer is seen complete.
    return table_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  }
  // All that anything is known of.
  std::span<Peer* const> peers() const {
    // pairs with publish: acquire, so that the entries below the count are seen.
    return {known_.data(), known_count_.load(std::memory_order_acquire)};
  }

  // The peer is gone, and is reported once. Any thread.
  void fail(Peer& peer, std::string reason);
  Failures& failures() { return failures_; }

 private:
  bool is_rank(int rank) const { return rank >= 0 && static_cast<size_t>(rank) < table_.size(); }
  Status wait(Peer& peer, Deadline deadline, std::unique_lock<std::mutex>& lock);
  // With the mutex held.
  Peer& publish(Address address);
  void set_connected(Peer& peer);
  void write(int rank, Letter::Kind kind, uint64_t to_nonce);

  const Address own_;
  Mail& mail_;
  std::mutex mutex_;
  std::condition_variable changed_;  // of a peer's state
  std::vector<bool> out_of_reach_;   // by rank: no letter comes from it
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::atomic<Peer*>> table_;
  std::vector<Peer*> known_;
  std::atomic<size_t> known_count_{0};
  Failures failures_;
};

}  // namespace tutti::internal::ucx
