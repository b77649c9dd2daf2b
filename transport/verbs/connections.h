// Who is connected, who was, and with whom it is under way.
//
// The owner reads the table of peers without the mutex: an entry is published once, complete, and stays until
// destruction. All else is guarded by `mutex()`, and is for the connector and its wirings.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "transport/failures.h"
#include "transport/verbs/address.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/queues.h"
#include "transport/verbs/settings.h"

namespace tutti::internal::verbs {

// What an attempt to connect is to bring about.
struct Plan {
  int rank = -1;
  Address address;
  std::vector<Path> paths;  // one queue pair on each
  Deadline deadline = Deadline::never();
};

struct Attempt {
  enum class Stage : uint8_t {
    none,
    asking,     // this rank has asked the other
    answering,  // the other has asked, and is being answered
  };
  Stage stage = Stage::none;
  uint64_t nonce = 0;  // of the other's transport
  std::vector<Path> paths;
  std::vector<std::unique_ptr<QueuePair>> pairs;  // by path; null: not yet
  Status refusal;                                 // it ended, and another would end in the same way
  // It ended, and another may end better. Its queue pairs stay until then: the other end may still remember their
  // numbers, and the next ones get others.
  std::string trouble;
  std::optional<Deadline> pause;  // before another
};

class Connections {
 public:
  // `queues`: by port.
  Connections(Address own, int world_size, std::span<const std::unique_ptr<Queues>> queues, const Settings& settings);

  const Address& own() const { return own_; }
  const Settings& settings() const { return settings_; }
  Queues& queues(int port) const { return *queues_[static_cast<size_t>(port)]; }
  size_t world_size() const { return table_.size(); }
  size_t port_count() const { return queues_.size(); }
  uint32_t credits() const { return queues_.front()->credits(); }
  bool is_rank(int rank) const { return rank >= 0 && static_cast<size_t>(rank) < table_.size(); }

  // Null where not connected.
  Peer* peer(int rank) const {
    if (!is_rank(rank)) return nullptr;
    // pairs with publish: acquire, so that the peer is seen complete.
    return table_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  }
  // All that were ever connected.
  std::span<Peer* const> peers() const {
    // pairs with publish: acquire, so that the entries below the count are seen.
    return {active_.data(), active_count_.load(std::memory_order_acquire)};
  }

  // The peer is gone: its queue pairs are closed, and it is reported once. Any thread.
  void fail(Peer& peer, std::string reason);
  Failures& failures() { return failures_; }
  // Some peer wants to be looked at by the owner.
  std::atomic<bool>& alarm() { return alarm_; }

  std::mutex& mutex() { return mutex_; }
  // Of an attempt, or of a peer's state.
  std::condition_variable& changed() { return changed_; }

  // All below: with the mutex held.
  Attempt& attempt(int rank) { return attempts_[static_cast<size_t>(rank)]; }
  // The attempt's stage becomes `asking`, with queue pairs that are not connected. Errors: out_of_resources,
  // unsupported.
  Status begin(const Plan& plan);
  Result<std::vector<std::unique_ptr<QueuePair>>> make_pairs(std::span<const Path> paths);
  void publish(int rank, std::vector<std::unique_ptr<QueuePair>> pairs, PeerState state);
  // From accepting.
  void set_connected(Peer& peer);

 private:
  const Address own_;
  const std::span<const std::unique_ptr<Queues>> queues_;
  const Settings settings_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Attempt> attempts_;  // by rank
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::atomic<Peer*>> table_;
  std::vector<Peer*> active_;
  std::atomic<size_t> active_count_{0};
  Failures failures_;
  std::atomic<bool> alarm_{false};
};

}  // namespace tutti::internal::verbs
