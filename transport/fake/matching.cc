// How messages and requests meet. All private functions run with the lock held.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "transport/fake/network.h"

namespace tutti::internal::fake {

uint64_t Network::delay() {
  if (options_.most_delay_polls == 0) return 0;
  return std::uniform_int_distribution<uint64_t>(0, options_.most_delay_polls)(random_);
}

bool Network::chance(double share) { return share > 0 && std::bernoulli_distribution(share)(random_); }

Post Network::admit(int rank) {
  Node& self = node(rank);
  ++self.posts;
  if (!self.gone && self.posts >= self.last_post) stop(rank, "it died at the post it was told to", true);
  if (self.gone) return Post::failed;
  settle(self);
  return chance(options_.later_share) ? Post::later : Post::posted;
}

Post Network::send(int rank, const SendRequest& request) {
  const std::scoped_lock lock(mutex_);
  if (const Post post = admit(rank); post != Post::posted) return post;
  Node& self = node(rank);
  for (const Endpoint& to : request.to)
    if (!can_send(self, to.peer)) return Post::failed;
  if (request.to.empty()) return Post::done;
  const bool buffered = request.bytes <= options_.buffered_bytes;
  const auto* const data = static_cast<const std::byte*>(request.data);
  const uint64_t id = buffered ? kBuffered : next_id_++;
  if (!buffered)
    self.sends.emplace(id, Send{.channel = request.channel, .ticket = request.ticket, .readers = request.to.size()});
  for (const Endpoint& to : request.to) {
    Message message{.key = {rank, {request.channel, request.match_base + to.match}},
                    .send = id,
                    .offered = data,
                    .buffer = std::pmr::vector<std::byte>(&pool_),
                    .bytes = request.bytes};
    if (buffered && request.bytes > 0) message.buffer.assign(data, data + request.bytes);
    deliver(node(to.peer), std::move(message));
  }
  return buffered ? Post::done : Post::posted;
}

Post Network::receive(int rank, const RecvRequest& posted) {
  const std::scoped_lock lock(mutex_);
  if (const Post post = admit(rank); post != Post::posted) return post;
  Node& self = node(rank);
  const Key key{posted.from.peer, {posted.channel, posted.from.match}};
  if (!can_receive(self, key)) return Post::failed;
  Request request{.channel = posted.channel,
                  .ticket = posted.ticket,
                  .dst = static_cast<std::byte*>(posted.data),
                  .bytes = posted.bytes,
                  .reduction = {},
                  .missing = 0,
                  .operands = std::pmr::vector<Operand>(&pool_)};
  add_operand(request, key, nullptr);
  return add(self, std::move(request));
}

Post Network::reduce(int rank, const ReduceRequest& posted) {
  const std::scoped_lock lock(mutex_);
  if (const Post post = admit(rank); post != Post::posted) return post;
  Node& self = node(rank);
  Request request{.channel = posted.channel,
                  .ticket = posted.ticket,
                  .dst = static_cast<std::byte*>(posted.dst),
                  .bytes = posted.element_count * posted.reduction.element_bytes,
                  .reduction = posted.reduction,
                  .missing = 0,
                  .operands = std::pmr::vector<Operand>(&pool_)};
  for (const ReduceOperand& operand : posted.operands) {
    const Key key{operand.from.peer, {posted.channel, operand.from.match}};
    if (key.from >= 0 && !can_receive(self, key)) return Post::failed;
    add_operand(request, key, operand.local);
  }
  return add(self, std::move(request));
}

void Network::add_operand(Request& request, const Key& key, const void* local) {
  // The buffer shares the pool with those of the messages, so that they move in without a copy.
  request.operands.push_back({.key = key,
                              .local = static_cast<const std::byte*>(local),
                              .message = {.key = {}, .buffer = std::pmr::vector<std::byte>(&pool_)}});
}

Post Network::add(Node& self, Request posted) {
  const uint64_t id = next_id_++;
  Request& request = self.requests.emplace(id, std::move(posted)).first->second;
  for (const Operand& operand : request.operands) request.missing += operand.key.from >= 0;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const Key& key = request.operands[i].key;
    if (key.from < 0) continue;
    const auto there = self.arrived.find(key);
    if (there == self.arrived.end()) {
      self.waiting.emplace(key, Waiter{id, i});
      continue;
    }
    Message message = std::move(there->second);
    self.arrived.erase(there);
    if (!join(self, id, i, std::move(message))) return Post::posted;
  }
  if (request.missing > 0) return Post::posted;
  const Code code = finish(request);
  const Done done{request.channel, {request.ticket, code, 0}};
  self.requests.erase(id);
  // With delays both answers are right; callers must live with either.
  if (code == Code::ok && delay() <= options_.most_delay_polls / 2) return Post::done;
  complete(self, done.channel, done.completion);
  return Post::posted;
}

void Network::deliver(Node& to, Message message) {
  if (to.gone) return;
  uint64_t due = to.polls + delay();
  uint64_t& last = to.last_due[static_cast<size_t>(message.key.from)];
  if (!options_.reorder) due = std::max(due, last);
  last = due;
  to.in_flight.emplace(due, std::move(message));
  to.moved.notify_one();
}

void Network::settle(Node& self) {
  while (!self.in_flight.empty() && self.in_flight.begin()->first <= self.polls) {
    Message message = std::move(self.in_flight.begin()->second);
    self.in_flight.erase(self.in_flight.begin());
    arrive(self, std::move(message));
  }
  while (!self.news.empty() && self.news.begin()->first <= self.polls) {
    learn(self, self.news.begin()->second);
    self.news.erase(self.news.begin());
  }
}

void Network::arrive(Node& self, Message message) {
  const auto waiter = self.waiting.find(message.key);
  if (waiter == self.waiting.end()) {
    if (self.cancelled.contains(message.key.tag.channel)) return answer(message, Code::ok, 0);
    const Key key = message.key;
    self.arrived.emplace(key, std::move(message));
    return;
  }
  const auto [id, operand] = waiter->second;
  self.waiting.erase(waiter);
  if (!join(self, id, operand, std::move(message))) return;
  const auto found = self.requests.find(id);
  Request& request = found->second;
  if (request.missing > 0) return;
  const Code code = finish(request);
  complete(self, request.channel, {request.ticket, code, 0});
  self.requests.erase(found);
}

bool Network::join(Node& self, uint64_t id, size_t operand, Message message) {
  const auto found = self.requests.find(id);
  Request& request = found->second;
  if (message.bytes == request.bytes) {
    request.operands[operand].message = std::move(message);
    request.operands[operand].arrived = true;
    --request.missing;
    return true;
  }
  answer(message, Code::mismatch, request.bytes);
  drop(self, request);
  complete(self, request.channel, {request.ticket, Code::mismatch, message.bytes});
  self.requests.erase(found);
  return false;
}

Code Network::finish(Request& request) {
  std::array<const void*, kMaxOperands> sources;
  Code code = Code::ok;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    Operand& operand = request.operands[i];
    sources[i] = operand.data();
    if (operand.key.from < 0) continue;
    if (operand.message.send != kBuffered && operand.message.offered == nullptr) code = Code::aborted;
  }
  const Reduction& reduction = request.reduction;
  if (code == Code::ok && request.bytes > 0) {
    if (reduction.kernel == nullptr)
      std::memcpy(request.dst, sources[0], request.bytes);
    else
      reduction.kernel(request.dst, sources.data(), static_cast<int>(request.operands.size()),
                       request.bytes / reduction.element_bytes, reduction.divisor);
  }
  for (const Operand& operand : request.operands)
    if (operand.arrived) answer(operand.message, Code::ok, 0);
  return code;
}

void Network::drop(Node& self, const Request& request) {
  for (const Operand& operand : request.operands) {
    if (operand.key.from < 0) continue;
    if (operand.arrived)
      answer(operand.message, Code::ok, 0);
    else
      self.waiting.erase(operand.key);
  }
}

void Network::answer(const Message& message, Code code, size_t found_bytes) {
  if (message.send == kBuffered) return;
  Node& owner = node(message.key.from);
  const auto found = owner.sends.find(message.send);
  if (found == owner.sends.end()) return;  // cancelled, or its rank is gone
  Send& send = found->second;
  if (code != Code::ok) {
    send.code = code;
    send.found_bytes = found_bytes;
  }
  if (--send.readers > 0) return;
  complete(owner, send.channel, {send.ticket, send.code, send.found_bytes});
  owner.sends.erase(found);
}

void Network::complete(Node& owner, uint64_t channel, const Completion& completion) {
  owner.done.emplace(owner.polls + delay(), Done{channel, completion});
  owner.moved.notify_one();
}

size_t Network::poll(int rank, std::span<Completion> completions) {
  const std::scoped_lock lock(mutex_);
  Node& self = node(rank);
  if (self.gone) return 0;
  ++self.polls;
  settle(self);
  size_t count = 0;
  while (count < completions.size() && !self.done.empty() && self.done.begin()->first <= self.polls) {
    completions[count++] = self.done.begin()->second.completion;
    self.done.erase(self.done.begin());
  }
  return count;
}

void Network::cancel(int rank, uint64_t channel) {
  const std::scoped_lock lock(mutex_);
  Node& self = node(rank);
  self.cancelled.insert(channel);
  std::erase_if(self.requests, [&](const auto& entry) {
    if (entry.second.channel != channel) return false;
    drop(self, entry.second);
    return true;
  });
  std::erase_if(self.arrived, [&](const auto& entry) {
    if (entry.first.tag.channel != channel) return false;
    answer(entry.second, Code::ok, 0);
    return true;
  });
  std::erase_if(self.done, [&](const auto& entry) { return entry.second.channel == channel; });
  if (std::erase_if(self.sends, [&](const auto& entry) { return entry.second.channel == channel; }) > 0)
    withdraw(rank, channel);
}

void Network::forget(int rank, uint64_t channel) {
  const std::scoped_lock lock(mutex_);
  node(rank).cancelled.erase(channel);
}

}  // namespace tutti::internal::fake
