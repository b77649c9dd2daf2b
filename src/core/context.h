// A process's membership in one world: the store's session, the transport, the executor, and the groups. All of it is
// guarded by one lock (context_lock.h), but for the watch thread, which only fills the notices.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "algo/selector.h"
#include "src/base/config.h"
#include "src/core/context_lock.h"
#include "src/core/engine.h"
#include "src/core/group.h"
#include "src/core/notices.h"
#include "src/core/store/session.h"
#include "src/core/transports.h"
#include "src/core/waiter.h"
#include "src/core/watcher.h"
#include "transport/transport.h"

namespace tutti::internal {

// How a process joins: what the caller gave, before the environment fills the gaps.
struct JoinRequest {
  int rank = -1;
  int size = 0;
  std::string store;
  std::vector<std::string> settings;
};

class Context : private EngineEvents {
 public:
  // Joins the world; blocks until all ranks have, or the joining time is over.
  static Result<std::unique_ptr<Context>> join(const JoinRequest& request);
  // Leaves it: the others see an orderly goodbye.
  ~Context();

  const Config& config() const { return config_; }
  Engine& engine() { return engine_; }
  Transport& transport() { return *transport_; }
  ContextLock& lock() { return lock_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(addresses_.size()); }

  // Everything below is called with the lock held.

  // A group of this world. New channels come from the caller (see make_groups.h).
  Group& add_group(Membership membership, int64_t timeout_us);
  void remove_group(Group& group);
  size_t group_count() const { return groups_.size(); }
  // `count` fresh channel numbers; the first of them.
  uint64_t reserve_channels(uint32_t count);

  // Polls until `done()` or until `limit_us` microseconds are over; false then. Lets other threads in meanwhile.
  template <class Done>
  bool wait_until(Done&& done, Locked& lock, int64_t limit_us = Deadline::kNever);
  bool wait(const Work& work, Locked& lock, int64_t limit_us) {
    return wait_until([&] { return work.done; }, lock, limit_us);
  }
  bool poll();
  // What is looked at now and then while waiting: deadlines and long waits.
  void tick();
  const WaitHabit& wait_habit() const { return wait_habit_; }
  const RankMap& rank_map() const { return map_; }
  // By world rank: where it stands when neighbours stand side by side.
  const std::vector<int>& near_position() const { return near_position_; }

  // For groups.
  Choice choose(const Problem& problem) const;
  // Lets go of the lock while it waits for the peer's answer; ends early when the group fails meanwhile.
  Status connect(int peer, Deadline deadline, const Group& group);
  Result<std::unique_ptr<Work>> make_work(Plan& plan, Group& group);
  void retire(Work& work);
  // Ends the group's works and messages after Group::fail.
  void give_up(Group& group, bool announce);
  // Gives up the group of this channel and those made from it.
  void fail_descendants(uint64_t channel, const Status& status, bool announce);

  // JSON: version, ranks, transport, host, settings.
  std::string describe() const;

 private:
  static constexpr size_t kMostAborted = 256;

  Context(Config config, std::unique_ptr<Session> session, std::unique_ptr<Mail> mail, Connections world, int rank);

  void work_ended(Work& work) override;
  void work_failed(Work& work, Status status) override;

  void act_on_notices();
  void act_on(const Notice& notice);
  void peer_failed(const Notice& notice);
  void check_time(Work& work, int64_t now);
  void time_out(Work& work, int64_t waited_us);
  void hear(Group& group, Verdict::Report report);
  void give_verdicts();
  // Those of the work's peers that have not come.
  std::vector<int> missing(const Work& work) const;

  ContextLock& lock_;
  Config config_;
  const int64_t warn_after_us_;
  int rank_;
  Overrides overrides_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Mail> mail_;
  Costs costs_;
  std::unique_ptr<Transport> transport_;
  std::vector<Way> ways_;  // by world rank
  Notices notices_;
  Engine engine_;
  std::vector<std::string> addresses_;
  std::shared_ptr<const Machine> machine_;
  RankPlace own_place_;
  RankMap map_;
  std::vector<int> near_position_;
  std::vector<bool> failed_;  // by world rank
  std::vector<bool> connected_;
  bool share_cpus_ = false;
  WaitHabit wait_habit_;
  uint32_t next_channel_ = 1;
  std::vector<std::unique_ptr<Group>> groups_;
  std::deque<std::pair<uint64_t, Status>> aborted_channels_;  // the latest
  std::vector<Work*> tick_works_;
  bool hears_reports_ = false;        // of a timeout, in some group
  std::unique_ptr<Watcher> watcher_;  // last: stops before what it watches goes
};

template <class Done>
bool Context::wait_until(Done&& done, Locked& lock, int64_t limit_us) {
  if (done()) return true;
  Waiter waiter(*this, lock, limit_us);
  do {
    if (poll()) {
      waiter.moved();
    } else if (!done() && !waiter.pause()) {
      return done();
    }
  } while (!done());
  return true;
}

}  // namespace tutti::internal
