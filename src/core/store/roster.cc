#include "src/core/store/roster.h"

#include <fmt/core.h>

#include <algorithm>

#include "src/core/store/rank_list.h"

namespace tutti::internal {
namespace {

constexpr size_t kMaxExchanges = 1024;  // open or failed; a world has use for a handful

Message event(Event::Kind kind, int rank, std::string text) {
  Message message;
  message.type = Message::Type::event;
  message.count = static_cast<int32_t>(kind);
  message.rank = rank;
  message.body = std::move(text);
  return message;
}

Message refusal(Code code, int rank, bool worth_another_try, std::string text) {
  Message message;
  message.type = Message::Type::refused;
  message.code = code;
  message.rank = rank;
  message.count = worth_another_try ? 1 : 0;
  message.body = std::move(text);
  return message;
}

}  // namespace

Roster::Roster(int size, uint64_t job, Postbox& postbox, std::function<void()> on_complete)
    : postbox_(postbox), on_complete_(std::move(on_complete)), job_(job), size_(size), largest_size_(size) {}

bool Roster::take(uint64_t connection, const std::string& from, Message message) {
  const auto known = ranks_.find(connection);
  if (known == ranks_.end()) return message.type == Message::Type::join && join(connection, from, std::move(message));
  const int rank = known->second;
  switch (message.type) {
    case Message::Type::give: return give(rank, std::move(message));
    case Message::Type::give_up: give_up(rank, message); return true;
    case Message::Type::goodbye: leave(rank); return true;
    case Message::Type::peer_failed:
    case Message::Type::abort: take_from_host(rank, message); return true;
    case Message::Type::letter: return pass_on(rank, message);
    default: return false;
  }
}

void Roster::take_from_host(int rank, const Message& message) {
  if (message.type == Message::Type::peer_failed) {
    peer_failed(message.rank, rank, fmt::format("{} (noticed by rank {})", message.body, rank));
  } else if (message.type == Message::Type::abort) {
    Message notice = event(Event::Kind::aborted, rank, message.body);
    notice.number = message.number;
    notice.code = message.code;
    notice.failed = message.failed;
    broadcast(notice, rank);
  } else if (message.type == Message::Type::letter) {
    pass_on(rank, message);
  }
}

// True in every case: a rank that is refused has broken no rule, and its connection is closed once it knows why.
bool Roster::refuse(uint64_t connection, Message refusal) {
  postbox_.send(connection, encode(refusal));
  postbox_.close(connection);
  return true;
}

bool Roster::join(uint64_t connection, const std::string& from, Message message) {
  const int rank = message.rank;
  const std::string where = fmt::format("{} (pid {})", from, message.number);
  if (rank < 0 || rank >= message.count || message.count > kMaxWorldSize)
    return refuse(connection, refusal(Code::invalid_argument, -1, false,
                                      fmt::format("there is no rank {} in a world of {}", rank, message.count)));
  const auto same = members_.find(rank);
  const bool taken = same != members_.end() && same->second.state == State::here;
  if (complete_ && !taken)
    return refuse(connection, refusal(Code::timeout, -1, true, "the world that is served there is ending"));
  std::string problem;
  if (!verdict_) problem = disagreement(message, where);
  if (!verdict_ && problem.empty() && taken)
    problem = fmt::format("rank {} joined twice: from {} and from {}", rank, same->second.where, where);
  if (complete_)
    return refuse(connection, refusal(Code::mismatch, -1, false, problem + "; the world there is complete"));
  largest_size_ = std::max(largest_size_, message.count);
  if (!problem.empty()) fail_join(Code::mismatch, -1, std::move(problem));
  if (verdict_) {
    told_.insert(rank);
    return refuse(connection, *verdict_);
  }
  size_ = message.count;
  members_[rank] = {connection, State::here, where, std::move(message)};
  ranks_[connection] = rank;
  Message welcome;
  welcome.type = Message::Type::welcome;
  postbox_.send(connection, encode(welcome));
  if (members_.size() == static_cast<size_t>(size_)) complete();
  return true;
}

// What must be alike on all ranks and is not; "" where all is well.
std::string Roster::disagreement(const Message& join, const std::string& where) const {
  if (members_.empty()) {
    if (size_ == 0 || size_ == join.count) return {};
    return fmt::format("rank {} at {} expects a world of {} ranks, the store serves one of {}", join.rank, where,
                       join.count, size_);
  }
  const auto& [rank, first] = *members_.begin();
  if (first.join.name != join.name)
    return fmt::format("rank {} at {} runs tutti {}, rank {} at {} runs {}", join.rank, where, join.name, rank,
                       first.where, first.join.name);
  if (size_ != join.count)
    return fmt::format("rank {} at {} expects a world of {} ranks, rank {} at {} one of {}", join.rank, where,
                       join.count, rank, first.where, first.join.count);
  if (first.join.body != join.body)
    return fmt::format("rank {} at {} has the settings \"{}\", rank {} at {} has \"{}\"", join.rank, where, join.body,
                       rank, first.where, first.join.body);
  return {};
}

void Roster::complete() {
  complete_ = true;
  if (on_complete_) on_complete_();
  Message ready;
  ready.type = Message::Type::ready;
  ready.number = job_;
  broadcast(ready, -1);
}

// Everyone learns why, those who come later too.
void Roster::fail_join(Code code, int rank, std::string text) {
  verdict_ = refusal(code, rank, false, std::move(text));
  for (const auto& [member_rank, member] : members_) {
    told_.insert(member_rank);
    refuse(member.connection, *verdict_);
  }
  members_.clear();
  ranks_.clear();
}

bool Roster::give(int rank, Message message) {
  if (!complete_) return false;
  if (!exchanges_.contains(message.name) && exchanges_.size() >= kMaxExchanges) return false;
  Exchange& exchange = exchanges_[message.name];
  if (exchange.failure) {
    postbox_.send(members_[rank].connection, encode(*exchange.failure));
    return true;
  }
  message.type = Message::Type::value;
  message.rank = rank;
  if (!exchange.values.emplace(rank, encode(message)).second) return false;
  if (exchange.values.size() < static_cast<size_t>(size_)) return true;
  for (const auto& [to, member] : members_) {
    if (member.state != State::here) continue;
    for (const auto& [of, frame] : exchange.values) postbox_.send(member.connection, frame);
  }
  exchanges_.erase(message.name);
  return true;
}

void Roster::give_up(int rank, const Message& message) {
  const double seconds = static_cast<double>(message.number) * 1e-6;
  if (message.name.empty()) {
    if (complete_ || verdict_) return;
    std::map<int, Frame> present;
    for (const auto& [member, detail] : members_) present[member] = nullptr;
    fail_join(Code::timeout, -1,
              fmt::format("{} of {} {} not joined within {:.1f} s (the time of rank {})", absent(present), size_,
                          size_ - static_cast<int>(present.size()) == 1 ? "has" : "have", seconds, rank));
    return;
  }
  const auto found = exchanges_.find(message.name);
  if (found == exchanges_.end() || found->second.failure) return;
  Message failure;
  failure.name = message.name;
  failure.code = Code::timeout;
  failure.body = fmt::format("{} of {} did not come to the exchange of \"{}\" within {:.1f} s (the time of rank {})",
                             absent(found->second.values), size_, message.name, seconds, rank);
  fail_exchange(found->second, std::move(failure));
}

void Roster::fail_exchange(Exchange& exchange, Message failure) {
  failure.type = Message::Type::exchange_failed;
  for (const auto& [rank, value] : exchange.values)
    if (members_[rank].state == State::here) postbox_.send(members_[rank].connection, encode(failure));
  exchange.values.clear();
  exchange.failure = std::move(failure);
}

void Roster::lost(uint64_t connection, const std::string& why) {
  const auto known = ranks_.find(connection);
  if (known == ranks_.end()) return;
  const int rank = known->second;
  const std::string text =
      fmt::format("its connection to the store ended without a goodbye: {}, {}", members_[rank].where, why);
  ranks_.erase(known);
  if (complete_) return peer_failed(rank, -1, text);
  members_.erase(rank);
  told_.insert(rank);
  fail_join(Code::peer_failed, rank, fmt::format("rank {} died while the ranks joined: {}", rank, text));
}

void Roster::peer_failed(int rank, int reporter, const std::string& text) {
  const auto found = members_.find(rank);
  if (!complete_ || found == members_.end() || found->second.state != State::here) return;
  found->second.state = State::failed;
  broadcast(event(Event::Kind::peer_failed, rank, text), rank, reporter);
}

void Roster::leave(int rank) {
  const uint64_t connection = members_[rank].connection;
  if (!complete_) return lost(connection, "it gave up joining");
  const bool was_here = members_[rank].state == State::here;
  ranks_.erase(connection);
  postbox_.close(connection);
  if (!was_here) return;
  members_[rank].state = State::left;
  broadcast(event(Event::Kind::left, rank, fmt::format("rank {} has left", rank)), rank);
}

// A letter to a rank that is gone goes nowhere, nor does one from a rank of which the others have heard that it failed.
bool Roster::pass_on(int from, const Message& letter) {
  const auto to = members_.find(letter.rank);
  if (!complete_ || to == members_.end() || letter.body.size() > kMaxLetterBytes) return false;
  if (to->second.state != State::here || members_[from].state != State::here) return true;
  Message passed;
  passed.type = Message::Type::letter;
  passed.rank = from;
  passed.body = letter.body;
  postbox_.send_news(to->second.connection, encode(passed));
  return true;
}

void Roster::announce_end(int rank, const std::string& text) {
  if (complete_) broadcast(event(Event::Kind::store_lost, rank, text), rank);
}

void Roster::broadcast(const Message& message, int except, int also_except) {
  const Frame frame = encode(message);
  for (const auto& [rank, member] : members_)
    if (member.state == State::here && rank != except && rank != also_except)
      postbox_.send_news(member.connection, frame);
}

std::vector<int> Roster::ranks_here(int except) const {
  std::vector<int> ranks;
  for (const auto& [rank, member] : members_)
    if (member.state == State::here && rank != except) ranks.push_back(rank);
  return ranks;
}

std::string Roster::absent(const std::map<int, Frame>& present) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank)
    if (!present.contains(rank)) ranks.push_back(rank);
  return list_ranks(ranks);
}

}  // namespace tutti::internal
