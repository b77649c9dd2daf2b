#include "transport/verbs/peer.h"

#include <algorithm>

namespace tutti::internal::verbs {

void Peer::post(const Control& message) {
  if (closed_.load(std::memory_order_relaxed)) return;  // nobody takes it; who closed it acts on that
  if (!has_backlog() && try_send(message)) return;
  backlog_.push_back(message);
  raise_alarm();
}

void Peer::flush() {
  while (has_backlog() && try_send(backlog_[backlog_head_])) ++backlog_head_;
  if (has_backlog()) return;
  backlog_.clear();
  backlog_head_ = 0;
}

bool Peer::return_credits() {
  bool all = true;  // what one has no room for is no matter of the others
  for (const auto& pair : pairs)
    if (pair->owes_many()) all &= pair->send({.kind = Kind::credit}, {});
  return all;
}

bool Peer::is_idle() const {
  return std::ranges::all_of(pairs, [](const auto& pair) { return pair->is_idle(); });
}

int Peer::refusal() const {
  const auto refused = std::ranges::find_if(pairs, [](const auto& pair) { return pair->refusal() != 0; });
  return refused == pairs.end() ? 0 : (*refused)->refusal();
}

void Peer::close() {
  // relaxed: the device orders what it does; the flag only keeps us from asking it twice.
  if (closed_.exchange(true, std::memory_order_relaxed)) return;
  for (const auto& pair : pairs) pair->close();
}

}  // namespace tutti::internal::verbs
