// The store's knowledge of a world: who has joined, what they exchange, and what befell them. No sockets, no clock:
// messages come in, messages go out through the postbox. One caller at a time.
//
// Invariant: before `is_complete` there are only members that are here; from then on every rank has an entry for good.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/core/store/event.h"
#include "src/core/store/message.h"

namespace tutti::internal {

inline constexpr int kMaxWorldSize = 1 << 20;

class Postbox {
 public:
  virtual ~Postbox() = default;
  // Answers: no more of them than were asked for.
  virtual void send(uint64_t connection, Frame frame) = 0;
  // What others do and write, which nobody asked for: whoever does not read it may be given up.
  virtual void send_news(uint64_t connection, Frame frame) = 0;
  // Once what was sent is written.
  virtual void close(uint64_t connection) = 0;
};

class Roster {
 public:
  // `size` 0: the first rank that joins says it. `on_complete` is called when all have joined, before they learn it.
  Roster(int size, uint64_t job, Postbox& postbox, std::function<void()> on_complete);

  // A connection that knows the secret, coming from `from`, sent this. False: it may not, and is to be dropped.
  bool take(uint64_t connection, const std::string& from, Message message);
  // The connection ended without a goodbye.
  void lost(uint64_t connection, const std::string& why);
  // Rank `rank`, which hosts the store, says this without a connection.
  void take_from_host(int rank, const Message& message);
  // The store ends; `rank` has served it.
  void announce_end(int rank, const std::string& text);

  bool is_member(uint64_t connection) const { return ranks_.contains(connection); }
  bool is_complete() const { return complete_; }
  // Whether joining has failed and everyone who could still come has come and been told.
  bool all_told() const { return verdict_ && told_.size() >= static_cast<size_t>(largest_size_); }
  // The ranks that have neither left nor failed, but for `except`.
  std::vector<int> ranks_here(int except) const;

 private:
  enum class State { here, left, failed };
  struct Member {
    uint64_t connection = 0;
    State state = State::here;
    std::string where;  // "127.0.0.1:4242 (pid 77)"
    Message join;
  };
  struct Exchange {
    std::map<int, Frame> values;
    std::optional<Message> failure;
  };

  bool join(uint64_t connection, const std::string& from, Message message);
  bool refuse(uint64_t connection, Message refusal);
  std::string disagreement(const Message& join, const std::string& where) const;
  void complete();
  void fail_join(Code code, int rank, std::string text);
  bool give(int rank, Message message);
  void give_up(int rank, const Message& message);
  void fail_exchange(Exchange& exchange, Message failure);
  void peer_failed(int rank, int reporter, const std::string& text);
  void leave(int rank);
  bool pass_on(int from, const Message& letter);
  void broadcast(const Message& message, int except, int also_except = -1);
  std::string absent(const std::map<int, Frame>& present) const;

  Postbox& postbox_;
  const std::function<void()> on_complete_;
  const uint64_t job_;
  int size_;
  int largest_size_ = 0;
  bool complete_ = false;
  std::optional<Message> verdict_;  // why joining has failed
  std::set<int> told_;              // who has learnt the verdict
  std::map<int, Member> members_;
  std::unordered_map<uint64_t, int> ranks_;  // of connections
  std::map<std::string, Exchange, std::less<>> exchanges_;
};

}  // namespace tutti::internal
