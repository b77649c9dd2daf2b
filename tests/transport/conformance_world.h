// Ranks of one process, as the conformance tests use them: posts that are tried again as long as the transport says
// later, completions that are checked to come once, and waits that end the test rather than hang.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "src/base/clock.h"
#include "tests/transport/post_office.h"
#include "transport/transport.h"

namespace tutti::internal::conformance {

class World;

// One rank. Used by one thread at a time.
class Rank {
 public:
  // Without a world it polls only itself.
  Rank(int index, Transport& transport, World* world = nullptr)
      : index_(index), world_(world), transport_(&transport), alone_(world == nullptr) {}

  int index() const { return index_; }
  Transport& transport() { return *transport_; }

  // Each posts, polling as long as the answer is later, and gives the ticket under which to ask for the result.
  Ticket send(uint64_t channel, std::span<const Endpoint> to, const void* data, size_t bytes);
  Ticket send(uint64_t channel, int to, uint64_t match, const void* data, size_t bytes);
  Ticket recv(uint64_t channel, int from, uint64_t match, void* data, size_t bytes);
  Ticket reduce(uint64_t channel, std::span<const ReduceOperand> operands, void* dst, size_t element_count,
                const Reduction& reduction);

  // What came of a request, if anything. A post that failed counts as Code::peer_failed.
  std::optional<Completion> result(Ticket ticket) const;
  bool is_ok(Ticket ticket) const { return result(ticket).value_or(Completion{0, Code::internal, 0}).code == Code::ok; }
  // Polls until there is a result.
  Completion wait(Ticket ticket);
  // The request will not complete: its channel was cancelled, or its peer is gone.
  void give_up(Ticket ticket) { open_.erase(ticket); }

  void poll();
  // Gives the channel up; where ranks write letters, while the others poll: a peer of such a transport may have to say
  // that it will not touch memory any more.
  void cancel(uint64_t channel);
  // Threads of their own poll only themselves.
  void set_alone(bool alone) { alone_ = alone; }
  void progress();
  // Polls until the transport reports a failure, or for about ten seconds.
  PeerFailure wait_failure();

 private:
  template <class PostOnce>
  Ticket post(PostOnce post_once);

  int index_;
  World* world_;
  Transport* transport_;
  bool alone_;
  Ticket next_ticket_ = 1;
  std::unordered_map<Ticket, bool> open_;
  std::unordered_map<Ticket, Completion> results_;
};

// So often ranks that share a process are polled until nothing should be on its way any more.
inline constexpr int kSettlingPolls = 300;

// All ranks, and the thread that serves their watches.
class World {
 public:
  // `settling_polls`: see TransportFactory.
  explicit World(std::vector<std::unique_ptr<Transport>> transports, PostOffice* office = nullptr,
                 int settling_polls = kSettlingPolls);
  ~World();

  int size() const { return static_cast<int>(ranks_.size()); }
  bool has_mail() const { return office_ != nullptr; }
  Rank& operator[](int rank) { return *ranks_[static_cast<size_t>(rank)]; }
  std::string address(int rank) const { return addresses_[static_cast<size_t>(rank)]; }

  Status connect(int from, int to) {
    return (*this)[from].transport().connect(to, address(to), Deadline::after_us(20'000'000));
  }
  void connect_all();
  // Destroys the rank's transport.
  void leave(int rank);
  // Polls all ranks once, but for one.
  void poll(int but = -1);
  // Polls all ranks until nothing should be on its way any more.
  void settle();
  // Runs body for each rank on a thread of its own.
  void run_threads(const std::function<void(Rank&)>& body);

 private:
  void serve();

  bool is_here(size_t rank) const { return transports_[rank] != nullptr; }

  std::vector<std::unique_ptr<Transport>> transports_;  // null: it has left
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::string> addresses_;
  PostOffice* const office_;
  const int settling_polls_;
  std::mutex mutex_;  // between serve and leave
  std::atomic<bool> stop_{false};
  int wake_fd_ = -1;
  std::thread watcher_;
};

// Bytes that depend on the seed and on where they stand.
void fill(std::span<std::byte> memory, uint64_t seed);
// Whether the memory is as fill made it; says where not.
::testing::AssertionResult holds(std::span<const std::byte> memory, uint64_t seed);
// Rank 0 sends so many bytes to rank 1, from a window of its own into one of rank 1's; expects them to be right.
void send_between_windows(World& world, size_t bytes);

// dst = (s0 * 31 + s1) * 31 + s2 ... on uint64, so that the order of the operands shows; counts what it is given.
struct PassCount {
  uint64_t calls = 0;
  uint64_t elements = 0;
  int fewest_operands = kMaxOperands + 1;
  int most_operands = 0;
};
inline thread_local PassCount pass_count;
void digits_kernel(void* dst, const void* const* sources, int source_count, size_t element_count, uint32_t divisor);
inline constexpr Reduction kDigits{digits_kernel, sizeof(uint64_t), 0};
inline uint64_t add_digit(uint64_t number, uint64_t digit) { return number * 31 + digit; }

// From TUTTI_TEST_SEED, else a new one; printed.
std::mt19937_64 seeded();

}  // namespace tutti::internal::conformance
