#include "src/core/context.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/log.h"
#include "src/core/cpu_share.h"
#include "src/core/lock_pool.h"
#include "src/core/trace.h"
#include "topology/show.h"

namespace tutti::internal {
namespace {

bool share_cpus_on(const std::vector<RankPlace>& places, int node) {
  std::vector<CpuList> cpus;
  for (const RankPlace& place : places)
    if (place.node == node) cpus.push_back(place.cpus);
  return ranks_outnumber_cpus(cpus);
}

// Alike on all ranks: where some share their cores, all take it that all do.
bool share_cpus_anywhere(const std::vector<RankPlace>& places) {
  std::set<int32_t> nodes;
  for (const RankPlace& place : places) nodes.insert(place.node);
  return std::ranges::any_of(nodes, [&](int32_t node) { return share_cpus_on(places, node); });
}

const CostParameters& cost_of(const Carriage& carriage, bool shares_cpus) {
  switch (carriage.carrier) {
    case Carrier::shm: break;
    case Carrier::verbs: return carriage.is_software ? kSoftwareRdma : kRdma;
    case Carrier::ucx: return shares_cpus ? kUcxSharedCores : kUcx;
  }
  return shares_cpus ? kSharedCores : kSharedMemory;
}

Costs costs_of(const Connections& world) {
  const bool shares_cpus = share_cpus_anywhere(world.places);
  return {cost_of(world.within, shares_cpus), cost_of(world.across, shares_cpus)};
}

nlohmann::json known(int index) { return index < 0 ? nlohmann::json(nullptr) : nlohmann::json(index); }

}  // namespace

Context::Context(Config config, std::unique_ptr<Session> session, std::unique_ptr<Mail> mail, Connections world,
                 int rank)
    : lock_(take_lock()),
      config_(std::move(config)),
      warn_after_us_(config_.warn_after_us()),
      rank_(rank),
      session_(std::move(session)),
      mail_(std::move(mail)),
      costs_(costs_of(world)),
      transport_(std::move(world.transport)),
      ways_(std::move(world.ways)),
      engine_(*transport_, *this),
      addresses_(std::move(world.addresses)),
      own_place_(world.places[static_cast<size_t>(rank)]),
      map_(world.places),
      near_position_(world.places.size()),
      failed_(world.places.size(), false),
      connected_(world.places.size(), false),
      share_cpus_(share_cpus_on(world.places, own_place_.node)),
      wait_habit_(habit_for(share_cpus_, world.within.is_software || world.across.is_software)) {
  for (int position = 0; position < size(); ++position) near_position_[map_.near_order()[position]] = position;
  if (share_cpus_) log_info("{} ranks share fewer cores: waiting ranks give up their core at once", size());
}

Context::~Context() {
  if (watcher_) watcher_->stop();
  groups_.clear();
  transport_.reset();  // says goodbye to the peers; the session may then wait for them for long
  if (session_) {
    const Status left = session_->leave(Deadline::after_us(config_.join_timeout_us()));
    if (!left.ok()) log_info("leaving the world: {}", left.message());
  }
  return_lock(lock_);
}

Group& Context::add_group(Membership membership, int64_t timeout_us) {
  groups_.push_back(std::make_unique<Group>(*this, std::move(membership), timeout_us));
  Group& group = *groups_.back();
  for (int peer = 0; peer < size(); ++peer)
    if (failed_[peer] && group.has_rank(peer))
      group.fail(Status::peer_failed(peer, fmt::format("rank {} had failed before this group was made", peer)), false);
  for (const auto& [channel, status] : aborted_channels_)
    if (group.descends_from(channel)) group.fail(status, false);
  return group;
}

void Context::remove_group(Group& group) {
  group.drop_plans();
  transport_->forget(group.membership().channel);
  std::erase_if(groups_, [&](const auto& owned) { return owned.get() == &group; });
}

// Unique in the world: the upper half is the rank that hands them out.
uint64_t Context::reserve_channels(uint32_t count) {
  const uint64_t first = static_cast<uint64_t>(rank_) << 32 | next_channel_;
  next_channel_ += count;
  return first;
}

Choice Context::choose(const Problem& problem) const { return select(problem, costs_, overrides_); }

// A peer may be slow to answer, or stopped. Others use the world meanwhile, and what they or the watch thread learn
// ends the wait: so it goes in stretches, each twice as long as the one before.
Status Context::connect(int peer, Deadline deadline, const Group& group) {
  constexpr int64_t kFirstStretchUs = 100'000;
  if (connected_[peer] || peer == rank_) return {};
  for (int64_t stretch_us = kFirstStretchUs;; stretch_us *= 2) {
    if (failed_[peer]) return Status::peer_failed(peer, fmt::format("rank {} has failed", peer));
    lock_.unlock();
    Status status = transport_->connect(peer, addresses_[peer], std::min(deadline, Deadline::after_us(stretch_us)));
    lock_.lock();
    act_on_notices();
    if (!group.failure().ok()) return group.failure();
    if (status.ok()) connected_[peer] = true;
    if (status.code() != Code::timeout || deadline.passed()) return status;
  }
}

Result<std::unique_ptr<Work>> Context::make_work(Plan& plan, Group& group) {
  void* scratch = nullptr;
  if (const uint64_t bytes = plan.schedule().scratch_bytes) {
    auto memory = transport_->allocate(bytes);
    if (!memory) return memory.status();
    scratch = memory.value();
  }
  const uint32_t id = engine_.add(nullptr);
  auto work = std::make_unique<Work>(plan, group, id, scratch);
  engine_.set(id, work.get());
  return work;
}

void Context::retire(Work& work) {
  engine_.remove(work.id());
  if (!work.scratch()) return;
  if (const Status released = transport_->release(work.scratch()); !released.ok())
    log_error("releasing an operation's scratch memory: {}", released.message());
}

bool Context::poll() {
  const bool moved = engine_.poll();
  if (notices_.any()) [[unlikely]]
    act_on_notices();
  if (hears_reports_) [[unlikely]]
    give_verdicts();
  return moved;
}

void Context::work_ended(Work& work) { work.group().ended(work); }
void Context::work_failed(Work& work, Status status) { work.group().fail(status, true); }

void Context::act_on_notices() {
  for (const Notice& notice : notices_.take()) act_on(notice);
}

void Context::act_on(const Notice& notice) {
  if (notice.kind == Notice::Kind::peer_failed) return peer_failed(notice);
  const std::string text = fmt::format("rank {}: {}", notice.rank, notice.text);
  const auto group = std::ranges::find_if(
      groups_, [&](const auto& one) { return one->membership().channel == notice.channel && one->failure().ok(); });
  if (notice.code == Code::timeout && group != groups_.end())
    return hear(**group, {notice.rank, notice.failed_rank, text});
  fail_descendants(
      notice.channel,
      notice.code == Code::peer_failed ? Status::peer_failed(notice.failed_rank, text) : Status(notice.code, text),
      false);
}

void Context::peer_failed(const Notice& notice) {
  if (failed_[notice.rank]) return;
  failed_[notice.rank] = true;
  log_info("rank {} failed: {}", notice.rank, notice.text);
  transport_->disconnect(notice.rank);
  const Status status = Status::peer_failed(notice.rank, fmt::format("rank {} failed: {}", notice.rank, notice.text));
  for (const auto& group : groups_)
    if (group->has_rank(notice.rank)) group->fail(status, !notice.everyone_knows);
}

void Context::give_up(Group& group, bool announce) {
  transport_->cancel(group.membership().channel);
  std::vector<Work*> works;
  std::ranges::copy_if(engine_.running(), std::back_inserter(works),
                       [&](const Work* work) { return &work->group() == &group; });
  for (Work* work : works) {
    engine_.end(*work, group.failure());
    if (Work* main = work->then) {
      main->status = group.failure();
      main->done = true;
      group.recycle(*work);
    }
  }
  log_info("a group of {} ranks is given up: {}; its last operations: {}", group.size(), group.failure().message(),
           group.history());
  if (announce) session_->abort(group.membership().channel, group.failure());
}

void Context::fail_descendants(uint64_t channel, const Status& status, bool announce) {
  // For groups that are being made from it just now; one that was given up long ago has no more children.
  if (aborted_channels_.size() == kMostAborted) aborted_channels_.pop_front();
  aborted_channels_.emplace_back(channel, status);
  for (const auto& group : groups_)
    if (group->descends_from(channel)) group->fail(status, announce && group->membership().channel == channel);
}

void Context::tick() {
  if (engine_.was_refused()) watcher_->look();
  const int64_t now = now_us();
  tick_works_.assign(engine_.running().begin(), engine_.running().end());
  for (Work* work : tick_works_)
    if (!work->done) check_time(*work, now);
}

void Context::check_time(Work& work, int64_t now) {
  if (!work.has_deadline) {
    work.has_deadline = true;
    work.started_us = now;
    work.deadline = Deadline::after_us(work.timeout_us);
  }
  const int64_t waited_us = now - work.started_us;
  if (work.deadline.passed()) {
    time_out(work, waited_us);
  } else if (!work.warned && waited_us > warn_after_us_) {
    work.warned = true;
    log_warn("{} has waited {:.0f} s for {}; the last operations here: {}", internal::describe(work.shown()),
             double(waited_us) * 1e-6, rank_list(missing(work)), work.group().history());
  }
}

void Context::time_out(Work& work, int64_t waited_us) {
  Group& group = work.group();
  if (group.verdict().has_report_of(rank_)) return;
  const std::vector<int> awaited = missing(work);
  const int first = awaited.empty() ? -1 : awaited.front();
  std::string text = fmt::format("{} is not done after {:.3f} s: rank {} waits for {}",
                                 internal::describe(work.shown()), double(waited_us) * 1e-6, rank_, rank_list(awaited));
  session_->abort(group.membership().channel, Status(Code::timeout, text), first);
  hear(group, {rank_, first, std::move(text)});
}

void Context::hear(Group& group, Verdict::Report report) {
  group.verdict().add(std::move(report));
  hears_reports_ = true;
}

void Context::give_verdicts() {
  hears_reports_ = false;
  for (const auto& group : groups_) {
    if (!group->failure().ok() || !group->verdict().has_any()) continue;
    if (!group->verdict().is_due()) {
      hears_reports_ = true;
      continue;
    }
    fail_descendants(group->membership().channel, Status(Code::timeout, group->verdict().believed(rank_).text), false);
  }
}

std::vector<int> Context::missing(const Work& work) const {
  constexpr uint64_t kMatchesOfAWork = uint64_t{1} << 32;
  std::vector<int> ranks = awaited_ranks(work);
  std::erase_if(ranks, [&](int rank) { return !transport_->waits_for(rank); });
  // Of ranks that have come, more may be awaited: they wait for the same ones as we do.
  const std::vector<int> heard = heard_ranks(work);
  std::vector<int> silent = ranks;
  std::erase_if(silent, [&](int rank) {
    return std::ranges::binary_search(heard, rank) ||
           transport_->has_heard(rank, work.channel(), work.match_base, kMatchesOfAWork);
  });
  return silent.empty() ? ranks : silent;
}

std::string Context::describe() const {
  nlohmann::json settings = nlohmann::json::array();
  for (const Config::Row& row : config_.rows())
    settings.push_back({{"name", row.name}, {"value", row.value}, {"source", row.source}});
  nlohmann::json peers = nlohmann::json::array();
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_)
      peers.push_back({{"rank", peer}, {"transport", name(ways_[peer].carrier)}, {"why", ways_[peer].why}});
  return nlohmann::json{{"version", tutti_version()},
                        {"ranks", size()},
                        {"rank", rank_},
                        {"transport", transport_->name()},
                        {"host", own_place_.host},
                        {"nodes", map_.node_count()},
                        {"peers", peers},
                        {"place",
                         {{"cpus", to_string(own_place_.cpus)},
                          {"package", known(own_place_.package)},
                          {"numa_node", known(own_place_.numa)},
                          {"l3_domain", known(own_place_.l3)},
                          {"core", known(own_place_.core)}}},
                        {"machine", summary_json(*machine_)},
                        {"cores_shared", share_cpus_},
                        {"settings", settings}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // a setting may hold any bytes
}

}  // namespace tutti::internal
