#include "tests/transport/conformance_world.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

namespace tutti::internal::conformance {
namespace {

constexpr int64_t kPatienceUs = 60'000'000;

}  // namespace

template <class PostOnce>
Ticket Rank::post(PostOnce post_once) {
  const Ticket ticket = next_ticket_++;
  const Deadline deadline = Deadline::after_us(kPatienceUs);
  open_.emplace(ticket, true);  // first: a completion may come with the polls below
  for (;;) {
    switch (post_once(ticket)) {
      case Post::posted: return ticket;
      case Post::later:
        progress();
        if (deadline.passed()) throw std::runtime_error("a post of rank " + std::to_string(index_) + " stays later");
        continue;
      case Post::done: results_[ticket] = {ticket, Code::ok, 0}; break;
      case Post::failed: results_[ticket] = {ticket, Code::peer_failed, 0}; break;
    }
    open_.erase(ticket);
    return ticket;
  }
}

Ticket Rank::send(uint64_t channel, std::span<const Endpoint> to, const void* data, size_t bytes) {
  return post([&](Ticket ticket) {
    return transport_->post_send({.channel = channel, .to = to, .data = data, .bytes = bytes, .ticket = ticket});
  });
}

Ticket Rank::send(uint64_t channel, int to, uint64_t match, const void* data, size_t bytes) {
  const Endpoint end{to, match};
  return send(channel, std::span(&end, 1), data, bytes);
}

Ticket Rank::recv(uint64_t channel, int from, uint64_t match, void* data, size_t bytes) {
  return post([&](Ticket ticket) {
    return transport_->post_recv(
        {.channel = channel, .from = {from, match}, .data = data, .bytes = bytes, .ticket = ticket});
  });
}

Ticket Rank::reduce(uint64_t channel, std::span<const ReduceOperand> operands, void* dst, size_t element_count,
                    const Reduction& reduction) {
  return post([&](Ticket ticket) {
    return transport_->post_reduce({.channel = channel,
                                    .operands = operands,
                                    .dst = dst,
                                    .element_count = element_count,
                                    .reduction = reduction,
                                    .ticket = ticket});
  });
}

std::optional<Completion> Rank::result(Ticket ticket) const {
  const auto found = results_.find(ticket);
  return found == results_.end() ? std::nullopt : std::optional(found->second);
}

Completion Rank::wait(Ticket ticket) {
  const Deadline deadline = Deadline::after_us(kPatienceUs);
  while (!result(ticket)) {
    progress();
    if (deadline.passed())
      throw std::runtime_error("rank " + std::to_string(index_) + ": no completion for ticket " +
                               std::to_string(ticket));
  }
  return *result(ticket);
}

void Rank::poll() {
  std::array<Completion, 16> found;
  const size_t count = transport_->poll(found);
  ASSERT_LE(count, found.size());
  for (const Completion& completion : std::span(found).first(count)) {
    if (open_.erase(completion.ticket) == 0)
      ADD_FAILURE() << "rank " << index_ << " got a completion that it did not wait for: ticket " << completion.ticket;
    results_[completion.ticket] = completion;
  }
}

void Rank::progress() {
  if (!alone_) return world_->poll();
  poll();
  std::this_thread::yield();
}

void Rank::cancel(uint64_t channel) {
  if (alone_ || !world_->has_mail()) return transport_->cancel(channel);
  std::atomic<bool> done = false;
  std::thread cancelling([&] {
    transport_->cancel(channel);
    done.store(true);
  });
  while (!done.load()) world_->poll(index_);
  cancelling.join();
}

PeerFailure Rank::wait_failure() {
  const Deadline deadline = Deadline::after_us(10'000'000);
  for (;;) {
    PeerFailure failure = transport_->take_failure();
    if (failure.peer >= 0 || deadline.passed()) return failure;
    progress();
  }
}

World::World(std::vector<std::unique_ptr<Transport>> transports, PostOffice* office, int settling_polls)
    : transports_(std::move(transports)),
      office_(office),
      settling_polls_(settling_polls),
      wake_fd_(eventfd(0, EFD_CLOEXEC)) {
  for (const auto& transport : transports_) {
    addresses_.push_back(transport->address());
    ranks_.push_back(std::make_unique<Rank>(static_cast<int>(ranks_.size()), *transport, this));
  }
  watcher_ = std::thread([this] { serve(); });
}

World::~World() {
  stop_.store(true);
  eventfd_write(wake_fd_, 1);
  watcher_.join();
  close(wake_fd_);
}

void World::serve() {
  std::vector<pollfd> entries;
  std::vector<std::pair<size_t, uint64_t>> keys;  // rank and key
  while (!stop_.load()) {
    entries.assign(1, {wake_fd_, POLLIN, 0});
    keys.clear();
    {
      const std::scoped_lock lock(mutex_);
      for (size_t rank = 0; rank < transports_.size(); ++rank) {
        if (!is_here(rank)) continue;
        for (const Watch& watch : transports_[rank]->watches()) {
          entries.push_back({watch.fd, POLLIN, 0});
          keys.emplace_back(rank, watch.key);
        }
      }
    }
    ::poll(entries.data(), entries.size(), 5);
    const std::scoped_lock lock(mutex_);
    if (office_ != nullptr)
      for (const auto& [from, to, text] : office_->take())
        if (is_here(static_cast<size_t>(to))) transports_[static_cast<size_t>(to)]->deliver(from, text);
    for (size_t i = 0; i < keys.size(); ++i)
      if (entries[i + 1].revents != 0 && is_here(keys[i].first)) transports_[keys[i].first]->serve(keys[i].second);
  }
}

void World::connect_all() {
  for (int from = 0; from < size(); ++from)
    for (int to = 0; to < size(); ++to) {
      if (from == to) continue;
      const Status status = connect(from, to);
      ASSERT_TRUE(status.ok()) << "rank " << from << " to rank " << to << ": " << status.message();
    }
}

void World::leave(int rank) {
  const std::scoped_lock lock(mutex_);
  transports_[static_cast<size_t>(rank)].reset();
  for (const auto& other : transports_)
    if (other != nullptr) other->gets_no_letters(rank);
}

void World::poll(int but) {
  for (size_t rank = 0; rank < ranks_.size(); ++rank)
    if (is_here(rank) && static_cast<int>(rank) != but) ranks_[rank]->poll();
}

void World::settle() {
  for (int i = 0; i < settling_polls_; ++i) poll();
}

void World::run_threads(const std::function<void(Rank&)>& body) {
  std::vector<std::thread> threads;
  for (const auto& rank : ranks_) {
    rank->set_alone(true);
    threads.emplace_back([&body, &self = *rank] {
      try {
        body(self);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& rank : ranks_) rank->set_alone(false);
}

namespace {

// The word at position `i` of what fill writes.
uint64_t word_at(size_t i, uint64_t seed) {
  const uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15U + seed * 0xbf58476d1ce4e5b9U;
  return mixed ^ mixed >> 31;
}

}  // namespace

void fill(std::span<std::byte> memory, uint64_t seed) {
  for (size_t offset = 0; offset < memory.size(); offset += sizeof(uint64_t)) {
    const uint64_t word = word_at(offset / sizeof(uint64_t), seed);
    std::memcpy(memory.data() + offset, &word, std::min(sizeof word, memory.size() - offset));
  }
}

::testing::AssertionResult holds(std::span<const std::byte> memory, uint64_t seed) {
  for (size_t offset = 0; offset < memory.size(); offset += sizeof(uint64_t)) {
    const uint64_t word = word_at(offset / sizeof(uint64_t), seed);
    if (std::memcmp(memory.data() + offset, &word, std::min(sizeof word, memory.size() - offset)) != 0)
      return ::testing::AssertionFailure() << "differs in the word at byte " << offset << " of " << memory.size();
  }
  return ::testing::AssertionSuccess();
}

void send_between_windows(World& world, size_t bytes) {
  auto from = world[0].transport().allocate(bytes);
  auto to = world[1].transport().allocate(bytes);
  ASSERT_TRUE(from) << from.status().message();
  ASSERT_TRUE(to) << to.status().message();
  fill({static_cast<std::byte*>(*from), bytes}, 1);
  const Ticket received = world[1].recv(1, 0, 1, *to, bytes);
  const Ticket sent = world[0].send(1, 1, 1, *from, bytes);
  EXPECT_EQ(world[1].wait(received).code, Code::ok);
  EXPECT_EQ(world[0].wait(sent).code, Code::ok);
  EXPECT_TRUE(holds({static_cast<const std::byte*>(*to), bytes}, 1));
}

void digits_kernel(void* dst, const void* const* sources, int source_count, size_t element_count, uint32_t divisor) {
  ++pass_count.calls;
  pass_count.elements += element_count;
  pass_count.fewest_operands = std::min(pass_count.fewest_operands, source_count);
  pass_count.most_operands = std::max(pass_count.most_operands, source_count);
  for (size_t i = 0; i < element_count; ++i) {
    uint64_t number = 0;
    for (int s = 0; s < source_count; ++s) {
      uint64_t digit = 0;
      std::memcpy(&digit, static_cast<const std::byte*>(sources[s]) + i * sizeof digit, sizeof digit);
      number = s == 0 ? digit : add_digit(number, digit);
    }
    if (divisor != 0) number /= divisor;
    std::memcpy(static_cast<std::byte*>(dst) + i * sizeof number, &number, sizeof number);
  }
}

std::mt19937_64 seeded() {
  const char* const text = std::getenv("TUTTI_TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
  std::cout << "TUTTI_TEST_SEED=" << seed << "\n";
  return std::mt19937_64(seed);
}

}  // namespace tutti::internal::conformance
