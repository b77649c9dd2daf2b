// The ranks of a fake network: how they come, connect, go, and what memory they have.
#include "transport/fake/network.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <utility>

namespace tutti::internal::fake {
namespace {

// Tells the networks of a process apart.
uint64_t next_network_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);  // only has to be distinct
}

constexpr std::chrono::microseconds kLongestSleep{1000};

// Buffers up to here come from the pool too.
constexpr std::pmr::pool_options kPool{.max_blocks_per_chunk = 0, .largest_required_pool_block = size_t{1} << 20};

}  // namespace

Network::Network(int ranks, uint64_t seed, const FakeOptions& options)
    : id_(next_network_id()), options_(options), random_(seed), pool_(kPool) {
  for (int rank = 0; rank < ranks; ++rank) nodes_.push_back(std::make_unique<Node>(ranks, &pool_));
}

Network::~Network() {
  for (int rank = 0; rank < rank_count(); ++rank)
    if (node(rank).exists) close(rank);
}

void Network::open(int rank) {
  const std::scoped_lock lock(mutex_);
  node(rank).exists = true;
  node(rank).watch_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  opened_.notify_all();
}

void Network::close(int rank) {
  const std::scoped_lock lock(mutex_);
  Node& self = node(rank);
  if (!self.gone) {
    tell_those_left_waiting(rank);
    self.gone = true;
    vanish(rank, false);
  }
  for (const auto& [memory, bytes] : self.windows) munmap(memory, bytes);
  self.windows.clear();
  if (self.watch_fd >= 0) ::close(self.watch_fd);
  self.watch_fd = -1;
  self.exists = false;
}

void Network::die(int rank) {
  const std::scoped_lock lock(mutex_);
  if (!node(rank).gone) stop(rank, "it died", true);
}

void Network::die_at_post(int rank, uint64_t post) {
  const std::scoped_lock lock(mutex_);
  node(rank).last_post = node(rank).posts + post;
}

bool Network::is_gone(int rank) {
  const std::scoped_lock lock(mutex_);
  return node(rank).gone;
}

uint64_t Network::post_count(int rank) {
  const std::scoped_lock lock(mutex_);
  return node(rank).posts;
}

void Network::stop(int rank, const char* reason, bool lossy) {
  Node& self = node(rank);
  self.gone = true;
  vanish(rank, lossy);
  for (const auto& other : nodes_)
    if (other->links[static_cast<size_t>(rank)] == Link::connected) tell(*other, {rank, reason});
}

template <class Visit>
void Network::for_each_message_of(int rank, Visit visit) {
  for (const auto& other : nodes_) {
    for (auto& [due, message] : other->in_flight)
      if (message.key.from == rank) visit(message);
    for (auto& [key, message] : other->arrived)
      if (key.from == rank) visit(message);
    for (auto& [id, request] : other->requests)
      for (Operand& operand : request.operands)
        if (operand.arrived && operand.key.from == rank) visit(operand.message);
  }
}

void Network::withdraw(int rank, uint64_t channel) {
  for_each_message_of(rank, [&](Message& message) {
    if (message.key.tag.channel == channel) message.offered = nullptr;
  });
}

void Network::vanish(int rank, bool lossy) {
  Node& self = node(rank);
  self.in_flight.clear();
  self.arrived.clear();
  self.waiting.clear();
  self.requests.clear();
  self.sends.clear();
  self.done.clear();
  for (const auto& other : nodes_) {
    std::erase_if(other->in_flight, [&](const auto& entry) {
      const Message& message = entry.second;
      if (message.key.from != rank) return false;
      return message.send != kBuffered || (lossy && options_.most_delay_polls > 0 && chance(0.5));
    });
    std::erase_if(other->arrived,
                  [&](const auto& entry) { return entry.first.from == rank && entry.second.send != kBuffered; });
    for (auto& [id, request] : other->requests)
      for (Operand& operand : request.operands) {
        if (!operand.arrived || operand.key.from != rank || operand.message.send == kBuffered) continue;
        operand.arrived = false;  // and never will: the request waits until it is cancelled
        ++request.missing;
      }
  }
}

void Network::tell_those_left_waiting(int rank) {
  const char* const kReason = "it left in the middle of an operation";
  const auto leave_waiting = [&](int other) {
    if (node(other).links[static_cast<size_t>(rank)] == Link::connected) tell(node(other), {rank, kReason});
  };
  for (int other = 0; other < rank_count(); ++other)
    for (const auto& [key, waiter] : node(other).waiting)
      if (key.from == rank && !is_coming(node(other), key, false)) leave_waiting(other);
  // What it has not received of what was offered to it.
  const Node& self = node(rank);
  for (const auto& [due, message] : self.in_flight)
    if (message.send != kBuffered) leave_waiting(message.key.from);
  for (const auto& [key, message] : self.arrived)
    if (message.send != kBuffered) leave_waiting(key.from);
  for (const auto& [id, request] : self.requests)
    for (const Operand& operand : request.operands)
      if (operand.arrived && operand.message.send != kBuffered) leave_waiting(operand.key.from);
}

void Network::tell(Node& self, const PeerFailure& failure) {
  if (self.gone) return;
  const uint64_t wait = delay();
  if (wait == 0) return learn(self, failure);
  self.news.emplace(self.polls + wait, failure);
}

void Network::learn(Node& self, const PeerFailure& failure) {
  Link& link = self.links[static_cast<size_t>(failure.peer)];
  if (link != Link::connected) return;
  link = Link::lost;
  self.failures.push_back(failure);
  eventfd_write(self.watch_fd, 1);
  self.moved.notify_one();
}

bool Network::can_send(Node& self, int peer) {
  if (peer < 0 || peer >= rank_count()) return false;
  const Link link = self.links[static_cast<size_t>(peer)];
  if (link != Link::connected) return false;
  if (node(peer).exists) return true;  // or dead, and this rank does not know it yet
  learn(self, {peer, "it has left"});
  return false;
}

bool Network::is_coming(const Node& self, const Key& key, bool buffered_only) const {
  const auto counts = [&](const Message& message) { return !buffered_only || message.send == kBuffered; };
  if (const auto there = self.arrived.find(key); there != self.arrived.end()) return counts(there->second);
  return std::any_of(self.in_flight.begin(), self.in_flight.end(),
                     [&](const auto& entry) { return entry.second.key == key && counts(entry.second); });
}

bool Network::can_receive(Node& self, const Key& key) {
  if (key.from < 0 || key.from >= rank_count()) return false;
  const Link link = self.links[static_cast<size_t>(key.from)];
  if (link == Link::none || link == Link::disconnected) return false;
  if (link == Link::connected && node(key.from).exists) return true;
  if (is_coming(self, key, true)) return true;
  learn(self, {key.from, "it has left"});
  return false;
}

std::string Network::address(int rank) const { return fmt::format("fake:{}:{}", id_, rank); }

Result<int> Network::find(std::string_view address) const {
  const std::string own = fmt::format("fake:{}:", id_);
  int rank = -1;
  if (!address.starts_with(own))
    return Status(Code::unsupported, fmt::format("address '{}' is not of this network, '{}<rank>'", address, own));
  const std::string_view number = address.substr(own.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  if (error != std::errc() || end != number.data() + number.size() || rank < 0 || rank >= rank_count())
    return Status(Code::invalid_argument,
                  fmt::format("address '{}' names no rank from 0 to {}", address, rank_count() - 1));
  return rank;
}

Status Network::connect(int rank, int peer, std::string_view address, Deadline deadline) {
  auto found = find(address);
  if (!found) return found.status();
  if (*found != peer || peer == rank)
    return Status(Code::invalid_argument, fmt::format("rank {} connects to rank {} at '{}'", rank, peer, address));
  std::unique_lock lock(mutex_);
  Node& self = node(rank);
  const Link link = self.links[static_cast<size_t>(peer)];
  if (link == Link::connected) return {};
  const auto there = [&] { return node(peer).exists || node(peer).gone || self.gone; };
  if (deadline.is_never()) {
    opened_.wait(lock, there);
  } else if (!opened_.wait_for(lock, std::chrono::microseconds(deadline.remaining_us()), there)) {
    return Status(Code::timeout, fmt::format("rank {} of the fake network did not come", peer));
  }
  if (self.gone) return Status::peer_failed(rank, "this rank is dead");
  if (node(peer).gone || link != Link::none)
    return Status::peer_failed(peer, fmt::format("rank {} is gone from the fake network", peer));
  self.links[static_cast<size_t>(peer)] = Link::connected;
  return {};
}

void Network::disconnect(int rank, int peer) {
  const std::scoped_lock lock(mutex_);
  if (peer < 0 || peer >= rank_count()) return;
  node(rank).links[static_cast<size_t>(peer)] = Link::disconnected;
}

int Network::watch_fd(int rank) {
  const std::scoped_lock lock(mutex_);
  return node(rank).watch_fd;
}

PeerFailure Network::take_failure(int rank) {
  const std::scoped_lock lock(mutex_);
  Node& self = node(rank);
  if (self.failures.empty()) {
    eventfd_t count = 0;
    eventfd_read(self.watch_fd, &count);
    return {};
  }
  PeerFailure first = std::move(self.failures.front());
  self.failures.erase(self.failures.begin());
  return first;
}

Result<void*> Network::allocate(int rank, size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return Status::system(Code::out_of_resources, fmt::format("mmap of a window of {} bytes", bytes), errno);
  const std::scoped_lock lock(mutex_);
  node(rank).windows.emplace(memory, bytes);
  return memory;
}

Status Network::release(int rank, void* memory) {
  const std::scoped_lock lock(mutex_);
  auto& windows = node(rank).windows;
  const auto found = windows.find(memory);
  if (found == windows.end())
    return Status(Code::invalid_argument, fmt::format("{} is not the start of a window of this rank", memory));
  munmap(memory, found->second);
  windows.erase(found);
  return {};
}

Status Network::register_memory(int rank, void* memory, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (!node(rank).registered.emplace(memory, bytes).second)
    return Status(Code::invalid_argument, fmt::format("memory at {} is registered already", memory));
  return {};
}

Status Network::unregister_memory(int rank, void* memory) {
  const std::scoped_lock lock(mutex_);
  if (node(rank).registered.erase(memory) == 0)
    return Status(Code::invalid_argument, fmt::format("memory at {} is not registered", memory));
  return {};
}

void Network::idle(int rank, Deadline deadline) {
  std::unique_lock lock(mutex_);
  Node& self = node(rank);
  // With anything under way time must go on, and time is polls.
  if (!self.in_flight.empty() || !self.done.empty() || !self.news.empty() || !self.failures.empty()) return;
  const std::chrono::microseconds left(deadline.remaining_us());
  self.moved.wait_for(lock, std::min(left, kLongestSleep));
}

}  // namespace tutti::internal::fake
