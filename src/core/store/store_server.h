// The store: the TCP server through which the ranks of a world find each other and hear of each other's end. Rank 0
// hosts it, or the launcher. One thread of its own runs all connections, with all signals blocked; the owner's calls
// and that thread share the state under one mutex, which nobody holds while waiting.
//
// Whoever has not proved the secret and joined within kHandshakeTimeoutUs is dropped, and there are never more than
// kMaxStrangers of these, the oldest giving way, nor more than kMaxStrangerBytes kept for one.
//
// Events and letters wait for a rank that does not read; once they are more than kMaxNewsBytes, it has failed.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/core/store/frame_stream.h"
#include "src/core/store/handshake.h"
#include "src/core/store/listener.h"
#include "src/core/store/roster.h"

namespace tutti::internal {

inline constexpr int64_t kHandshakeTimeoutUs = 10'000'000;
inline constexpr size_t kMaxStrangers = 256;
inline constexpr size_t kMaxStrangerBytes = 4096;
inline constexpr size_t kMaxNewsBytes = size_t{64} << 20;

struct StoreOptions {
  int size = 0;  // of the world; 0: as the first rank says
  Credentials credentials;
  // Called on the store's thread when all ranks have joined, before any of them learns it.
  std::function<void()> on_complete;
};

class StoreServer : private Postbox {
 public:
  static Result<std::unique_ptr<StoreServer>> start(StoreOptions options, Listeners listeners);
  // Ends at once. Ranks that are still connected take it for a death, unless announce_end came first.
  ~StoreServer() override;

  uint16_t port() const { return port_; }

  // For rank `rank` in this process: it reports or gives up something or sends a letter, and this is on its way when it
  // returns.
  void tell(int rank, const Message& message);
  // Waits until every rank but `except` has left or failed. A timeout names those that have not.
  Status wait_until_left(int except, Deadline deadline);
  // Joining has failed: waits until every rank that could still come has come and knows it.
  void wait_until_told(Deadline deadline);
  // Tells the ranks that are still there that rank `rank` ends the store in order.
  void announce_end(int rank, const std::string& text);
  // An address of this machine by which another one reached the store; length 0 where there is none.
  Address reached_at();

 private:
  enum class Phase { greeting, proof, trusted, closing, draining };
  struct Connection {
    Socket socket;
    FrameReader reader;
    FrameWriter writer;
    std::string from;
    Phase phase = Phase::greeting;
    Nonce of_rank{}, of_store{};
    bool writable_watched = false;
  };

  StoreServer(StoreOptions options, Listeners listeners);
  Status open();
  void run();
  int wait_ms();
  void handle(uint64_t id, uint32_t events);
  void accept_some(int listener);
  bool make_room();
  void watch_listeners(bool on);
  void add(Socket socket);
  void read(uint64_t id, Connection& connection);
  bool advance(uint64_t id, Connection& connection);
  bool greet(Connection& connection);
  bool check_proof(Connection& connection);
  bool take_messages(uint64_t id, Connection& connection);
  void drop(uint64_t id, std::string why);
  void drop_expired();
  void write_dirty();
  bool write(uint64_t id, Connection& connection);
  void finish_writing(Deadline deadline);
  void wake();

  Connection* written_to(uint64_t id);

  void send(uint64_t connection, Frame frame) override;
  void send_news(uint64_t connection, Frame frame) override;
  void close(uint64_t connection) override;

  const Credentials credentials_;
  Listeners listeners_;
  const uint16_t port_;
  Socket epoll_, wake_;
  std::mutex mutex_;
  std::condition_variable changed_;  // with every batch of events
  Roster roster_;
  uint64_t next_id_;
  std::unordered_map<uint64_t, Connection> connections_;
  std::map<uint64_t, Deadline> limited_;  // strangers and those being closed: until when they may stay
  std::unordered_set<uint64_t> dirty_;    // have something to write
  Address reached_at_;
  Deadline rest_until_ = Deadline::never();  // short of descriptors: until when the listeners are not watched
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tutti::internal
