// The outside of an agent's supervisor: the tutti-run that started it, on another host. The supervisor's thread runs
// it.
#pragma once

#include <array>
#include <memory>

#include "src/run/agent_job.h"
#include "src/run/feed_pipe.h"
#include "src/run/link.h"
#include "src/run/outside.h"

namespace tutti::internal {

class Uplink : public Outside, private OutputReceiver {
 public:
  static Result<std::unique_ptr<Uplink>> create(UniqueFd in, UniqueFd out);

  // Waits for what there is to do.
  Result<AgentJob> await_job();
  // The pipe by which rank 0 gets the user's input: gives the rank's end.
  Result<UniqueFd> open_input();
  // The ranks have ended: says so, and waits until it is said.
  void finish();

  Result<UniqueFd> stream_of(int rank, Stream stream) override { return pipes_.add(rank, stream); }
  void say(const std::string& message) override { put({.type = LinkMessage::Type::say, .text = message}); }
  void fail(int status, const std::string& message, int running_count) override;
  void add_polls(std::vector<pollfd>& polls) const override;
  std::vector<Order> serve() override;
  Deadline wake_at() const override { return link_.wake_at(); }
  void take_rest() override;
  bool is_flushed() const override { return link_.is_flushed(); }

 private:
  Uplink(UniqueFd in, UniqueFd out);

  void put(const LinkMessage& message) { link_.put(message); }
  void serve_input();
  void obey(LinkMessage message, std::vector<Order>& orders);

  void take(int rank, Stream stream, std::string_view bytes) override;
  void finish(int rank, Stream stream) override;
  bool is_full() const override { return link_.is_full(); }
  bool is_broken(Stream stream) const override { return broken_[static_cast<size_t>(stream)]; }

  Link link_;
  RankPipes pipes_;
  FeedPipe input_;
  bool input_asked_ = false;
  bool lost_ = false;
  std::array<bool, 2> broken_{};
};

}  // namespace tutti::internal
