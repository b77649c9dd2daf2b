// Finds peers: listens for them and connects to them, keeps their connections open, and tells when one is gone.
//
// serve() runs on the watch thread, connect() on any, the rest on the owner's; `mutex_` guards connections and
// attempts. The owner reads the table of peers without it: an entry is published once, complete, and stays until
// destruction.
//
// A connection that closes without a goodbye, or a process that ends (a forked child may hold the connection open), is
// the peer's death. If both ends connect to each other at once, the attempt of the lower rank goes on and the other end
// waits for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "transport/failures.h"
#include "transport/shm/handshake.h"
#include "transport/shm/peer.h"
#include "transport/transport.h"

namespace tutti::internal::shm {

class Connector {
 public:
  struct Options {
    int world_size = 1;
    bool read_processes = true;  // false: as if the kernel forbade process_vm_readv in both directions
  };
  static Result<std::unique_ptr<Connector>> create(Region& region, const Address& own, const Options& options);
  ~Connector();

  Status connect(int rank, std::string_view address, Deadline deadline);
  // Readable when serve() has something to do.
  int watch_fd() const { return epoll_.get(); }
  void serve();

  // Null where not connected.
  Peer* peer(int rank) const {
    if (rank < 0 || rank >= options_.world_size) return nullptr;
    // pairs with adopt: acquire, so that the peer is seen complete.
    return table_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  }
  size_t active_count() const {
    // pairs with adopt: acquire, so that the entries below the count are seen.
    return active_count_.load(std::memory_order_acquire);
  }
  Peer& active(size_t i) const { return *active_[i]; }

  // The peer is gone: reported once. Any thread.
  void fail(Peer& peer, std::string reason);
  Failures& failures() { return failures_; }
  // The owner gives the peer up: not reported.
  void disconnect(Peer& peer);

 private:
  enum class Stage : uint8_t { hello_awaited, ready_awaited, open, process };
  struct Connection {
    ParentOnlyFd fd;
    Stage stage{};
    int rank = -1;
    bool foreign = false;  // another user's
    Deadline until = Deadline::never();
    Acquaintance met{};
  };
  using Connections = std::map<uint64_t, Connection>;

  Connector(Region& region, const Address& own, const Options& options);
  Status listen();
  Status watch(int fd, uint64_t id);

  // True: connected; false: the other end is about to connect to us.
  Result<bool> attempt(const Address& address, Deadline deadline);
  Result<Packet> await_answer(int socket, const Address& address, Deadline deadline, Received& received) const;

  // All below: with mutex_ held.
  bool is_arriving(int rank) const;
  void accept_all();
  bool turn_one_away();
  void drop_expired();
  void handle(uint64_t id);
  void handle_packet(uint64_t id, Connection& connection, Received& received, std::span<const std::byte> bytes);
  void on_hello(uint64_t id, Connection& connection, const Packet& hello, Received& received);
  void on_closed(uint64_t id, const std::string& reason);
  void on_process_end(uint64_t id);
  void refuse(uint64_t id, const Packet& hello, const Status& why);
  Status adopt(int rank, UniqueFd socket, Acquaintance met);
  void keep(int rank, Acquaintance met);

  Region& region_;
  const Address own_;
  const Options options_;
  Handshake handshake_;
  Doorbell doorbell_;  // our own
  ParentOnlyFd listener_;
  ParentOnlyFd epoll_;
  UniqueFd spare_;         // given up to turn a connection away when there is no other descriptor
  bool is_short_ = false;  // of descriptors: said once

  std::mutex mutex_;
  std::condition_variable changed_;
  Connections connections_;
  uint64_t next_id_ = 1;       // 0 is the listener
  std::vector<int> attempts_;  // under way, by rank

  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::atomic<Peer*>> table_;
  std::vector<Peer*> active_;
  std::atomic<size_t> active_count_{0};

  Failures failures_;
};

}  // namespace tutti::internal::shm
