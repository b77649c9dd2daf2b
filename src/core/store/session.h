// A rank's membership in the store: it joins, exchanges addresses, hears what befalls the others, and leaves.
//
// No thread of its own. `join`, `exchange` and `leave` block, and `serve` reads what is there: these are called by one
// thread at a time. `report_failed`, `abort` and `send_letter` may be called from any thread at any time and never
// wait. Whoever polls `fd` and calls `serve` when it is readable misses nothing, what arrived during `exchange`
// included.
//
// A world of one has no sockets: exchange gives its own value, and nothing ever happens.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/core/store/event.h"
#include "src/core/store/frame_stream.h"
#include "src/core/store/rendezvous.h"
#include "src/core/store/socket.h"
#include "src/core/store/store_server.h"

namespace tutti::internal {

struct JoinOptions {
  Rendezvous rendezvous;
  std::string version;  // both of these must be alike on all ranks
  std::string digest;   // the settings that matter to all, as text
};

class Session {
 public:
  // Blocks until all ranks have joined. Errors: timeout (names the ranks that are missing, or why the store could not
  // be reached), mismatch (names both ranks and values; or a rank that joined twice), peer_failed (a rank died
  // meanwhile), invalid_argument, out_of_resources.
  static Result<std::unique_ptr<Session>> join(const JoinOptions& options, Deadline deadline);
  // Without `leave` before it, the others see a death.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // The same random number on all ranks, and on those of no other job.
  uint64_t job() const { return job_; }
  // This machine's address on the way to the store, as others can use it; "" in a world of one.
  const std::string& local_host() const { return local_host_; }

  // Every rank gives a value of at most kMaxBodyBytes under the same key, and gets all values in the order of ranks.
  // Errors: timeout (names who has not come), peer_failed (a rank died or left meanwhile).
  Result<std::vector<std::string>> exchange(std::string_view key, std::string value, Deadline deadline);

  // Tells the others that this rank's transport has lost rank `rank`.
  void report_failed(int rank, std::string_view reason);
  // Tells the others that this rank gives up the group of `channel`, and at a timeout which rank it waits for first.
  void abort(uint64_t channel, const Status& why, int awaited = -1);
  // Sends rank `rank` a letter of at most kMaxLetterBytes. Those that this rank sends to one other arrive in order; one
  // to a rank that has left or failed is lost. Errors, with nothing sent: internal (too long, or no such rank).
  Status send_letter(int rank, std::string_view body);

  // Readable when `serve` has something to do; -1 in a world of one.
  int fd() const { return epoll_.fd(); }
  // Calls `on_event` for each event that has arrived. Does not wait.
  void serve(const std::function<void(const Event&)>& on_event);

  // Says goodbye. The rank that hosts the store then waits until the others have left too, at most until the deadline
  // (timeout, naming them); the others wait for nobody.
  Status leave(Deadline deadline);

 private:
  friend class Joining;

  explicit Session(const Rendezvous& rendezvous);
  Status open(Socket socket, FrameReader reader);
  Status await_ready(Deadline deadline);
  Result<Message> receive(Deadline deadline);
  Result<Message> receive_or_give_up(const std::string& key, Deadline deadline, bool& given_up);
  Result<std::vector<std::string>> await_values(const std::string& key, Deadline deadline);
  Status collect(const Message& message, const std::string& key, std::vector<std::string>& values, size_t& missing);
  Status gone() const;
  void send(const Message& message);
  void tell(const Message& message);
  void flush_locked();
  void read();
  void settle();
  bool take_news(Message& message);
  void note(Event event);
  void wake_for_rest();
  void note_loss(const std::string& why);
  void say_goodbye(Deadline deadline);

  const int rank_;
  const int size_;
  const bool served_by_rank_;
  uint64_t job_ = 0;
  std::string local_host_;
  std::string where_;                    // "rank 1 (127.0.0.1:4242)", for messages
  std::string store_;                    // "the store at 127.0.0.1:29500"
  std::unique_ptr<StoreServer> server_;  // where this rank hosts it
  Socket epoll_, kick_, socket_;
  FrameReader reader_;
  bool ended_ = false;        // nothing more will arrive, but what has arrived may be still to be taken in
  bool lost_ = false;         // and that is known
  bool loss_told_ = false;    // and no surprise: it was announced, or this rank has said goodbye
  std::deque<Event> events_;  // arrived, and not served yet
  std::set<int> failed_, gone_in_order_;
  std::string first_failure_;
  std::mutex send_mutex_;
  FrameWriter writer_;  // guarded by send_mutex_
};

}  // namespace tutti::internal
