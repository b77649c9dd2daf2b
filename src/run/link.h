// One end of the connection between tutti-run and an agent: messages in and out by two pipes, which never block, and
// the watch on the other end. Each end says something at least four times in the time after which the other counts it
// as lost; so a connection that was cut without a sign is noticed at both.
//
// An agent begins with a line that says what it is. Whatever came before that (shells have much to say when they start)
// is no part of the conversation.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"
#include "src/run/link_message.h"

namespace tutti::internal {

class Link {
 public:
  enum class Side { head, agent };

  Link(Side side, UniqueFd in, UniqueFd out, int64_t silence_us);

  void put(const LinkMessage& message);
  // The next message that is here.
  std::optional<LinkMessage> next();

  // What to poll for. Where `may_read` is false the other end may wait for us, and its silence means nothing.
  void add_polls(std::vector<pollfd>& polls, bool may_read) const;
  // Reads and writes what can be without waiting; at `wake_at` at the latest.
  void serve(bool may_read);
  Deadline wake_at() const;
  // The other end then sees the end of what we say.
  void close_out() { out_ = UniqueFd(); }
  // Nothing more is read.
  void close_in() { end_of_input(); }

  // How long the other end may say nothing.
  void set_silence(int64_t us) { silence_us_ = us; }
  // False: nothing more will come, and `why` says why. What came before may still be taken.
  bool is_open() const { return open_; }
  // The other end has closed it, which is what any failure of its own looks like.
  bool is_closed() const { return closed_; }
  const std::string& why() const { return why_; }
  // Head: the agent has begun to speak.
  bool is_greeted() const { return greeted_; }
  bool is_full() const { return queue_.size() - written_ >= kFullQueue; }
  bool is_flushed() const { return !out_ || written_ == queue_.size(); }

 private:
  static constexpr size_t kFullQueue = size_t{4} << 20;

  void read();
  void take_greeting();
  void write();
  void end(std::string why);
  void end_of_input();

  UniqueFd in_, out_;
  int64_t silence_us_;
  bool greeted_;
  bool open_ = true;
  bool closed_ = false;
  std::string why_;
  LinkBuffer arrived_;
  std::string queue_;
  size_t written_ = 0;  // of the queue
  int64_t heard_us_, spoke_us_;
};

}  // namespace tutti::internal
