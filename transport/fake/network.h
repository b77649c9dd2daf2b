// The shared state of a fake network, and how messages and requests meet in it. Any thread: `mutex_` guards everything,
// and each public function takes it.
//
// Bytes move in calls of the receiver only, like on a network whose receiver reads them in place. network.cc has the
// ranks and their memory, matching.cc the messages.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/fake/fake_network.h"
#include "transport/fake/node.h"

namespace tutti::internal::fake {

class Network {
 public:
  Network(int ranks, uint64_t seed, const FakeOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  void open(int rank);
  // The rank's transport is destroyed: a goodbye, unless it was dead.
  void close(int rank);
  void die(int rank);
  void die_at_post(int rank, uint64_t post);
  bool is_gone(int rank);
  uint64_t post_count(int rank);

  std::string address(int rank) const;
  // The rank behind an address, or why there is none.
  Result<int> find(std::string_view address) const;
  Status connect(int rank, int peer, std::string_view address, Deadline deadline);
  void disconnect(int rank, int peer);
  int watch_fd(int rank);
  PeerFailure take_failure(int rank);

  Result<void*> allocate(int rank, size_t bytes);
  Status release(int rank, void* memory);
  Status register_memory(int rank, void* memory, size_t bytes);
  Status unregister_memory(int rank, void* memory);

  Post send(int rank, const SendRequest& request);
  Post receive(int rank, const RecvRequest& request);
  Post reduce(int rank, const ReduceRequest& request);
  size_t poll(int rank, std::span<Completion> completions);
  void cancel(int rank, uint64_t channel);
  void forget(int rank, uint64_t channel);
  void idle(int rank, Deadline deadline);

 private:
  Node& node(int rank) { return *nodes_[static_cast<size_t>(rank)]; }
  int rank_count() const { return static_cast<int>(nodes_.size()); }
  uint64_t delay();
  bool chance(double share);

  // What happens to every post before it is looked at; Post::posted: it may go on.
  Post admit(int rank);
  // Whether the peer could take a message as far as this rank knows.
  bool can_send(Node& self, int peer);
  // Whether the message is there, or could still come.
  bool can_receive(Node& self, const Key& key);
  // Whether the message is there or under way. `buffered_only`: and can be received even if its sender is gone.
  bool is_coming(const Node& self, const Key& key, bool buffered_only) const;

  void deliver(Node& to, Message message);
  // Moves what is due at this rank: messages, then news.
  void settle(Node& self);
  void arrive(Node& self, Message message);
  void add_operand(Request& request, const Key& key, const void* local);
  Post add(Node& self, Request request);
  // False: the lengths differ, and the request is over.
  bool join(Node& self, uint64_t id, size_t operand, Message message);
  // All messages are there: combines them, tells their senders, and says what came of it.
  Code finish(Request& request);
  // Takes a request back before its time.
  void drop(Node& self, const Request& request);
  // The reader is done with a message.
  void answer(const Message& message, Code code, size_t found_bytes);
  void complete(Node& owner, uint64_t channel, const Completion& completion);

  // Calls visit(message) for each message of the rank that is not received.
  template <class Visit>
  void for_each_message_of(int rank, Visit visit);
  // The rank cancels what it offers on the channel.
  void withdraw(int rank, uint64_t channel);
  // Takes what is offered and not complete out of the network. `lossy`: what is buffered may get lost on its way.
  void vanish(int rank, bool lossy);
  void stop(int rank, const char* reason, bool lossy);
  void tell(Node& self, const PeerFailure& failure);
  void learn(Node& self, const PeerFailure& failure);
  // Tells the ranks that had asked a rank for more than it gave before it left.
  void tell_those_left_waiting(int rank);

  std::mutex mutex_;
  std::condition_variable opened_;
  const uint64_t id_;
  const FakeOptions options_;
  std::mt19937_64 random_;
  std::pmr::unsynchronized_pool_resource pool_;
  std::vector<std::unique_ptr<Node>> nodes_;
  uint64_t next_id_ = kBuffered + 1;  // of sends and requests
};

}  // namespace tutti::internal::fake
