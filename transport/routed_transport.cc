#include "transport/routed_transport.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {
namespace {

// A part of which nothing is wanted is looked at once in so many polls: its peers may have something for later.
constexpr uint64_t kRareLook = 16;
// Who waits for several parts sleeps in each for so long in turn.
constexpr int64_t kNapUs = 200;

}  // namespace

RoutedTransport::RoutedTransport(std::vector<std::unique_ptr<Transport>> transports, std::vector<int> way_of)
    : parts_(transports.size()), way_of_(std::move(way_of)) {
  for (size_t way = 0; way < parts_.size(); ++way) {
    parts_[way].transport = std::move(transports[way]);
    name_ += (way > 0 ? "+" : "") + std::string(parts_[way].transport->name());
  }
}

Status RoutedTransport::connect(int peer, std::string_view peer_address, Deadline deadline) {
  return to(peer).connect(peer, peer_address, deadline);
}

std::vector<Watch> RoutedTransport::watches() {
  std::vector<Watch> all;
  for (size_t way = 0; way < parts_.size(); ++way)
    for (const Watch& watch : parts_[way].transport->watches())
      all.push_back({watch.fd, watch.key * parts_.size() + way});
  return all;
}

void RoutedTransport::serve(uint64_t key) { parts_[key % parts_.size()].transport->serve(key / parts_.size()); }

Result<void*> RoutedTransport::allocate(size_t bytes) {
  auto window = parts_.front().transport->allocate(bytes);
  if (!window) return window.status();
  for (size_t way = 1; way < parts_.size(); ++way) {
    const Status status = parts_[way].transport->register_memory(*window, bytes);
    if (status.ok()) continue;
    while (--way > 0) (void)parts_[way].transport->unregister_memory(*window);
    (void)parts_.front().transport->release(*window);
    return status;
  }
  return window;
}

Status RoutedTransport::release(void* memory) {
  for (size_t way = 1; way < parts_.size(); ++way)
    TUTTI_RETURN_IF_ERROR(parts_[way].transport->unregister_memory(memory));
  return parts_.front().transport->release(memory);
}

Status RoutedTransport::register_memory(void* memory, size_t bytes) {
  for (size_t way = 0; way < parts_.size(); ++way) {
    const Status status = parts_[way].transport->register_memory(memory, bytes);
    if (status.ok()) continue;
    while (way-- > 0) (void)parts_[way].transport->unregister_memory(memory);
    return status;
  }
  return {};
}

Status RoutedTransport::unregister_memory(void* memory) {
  for (Part& part : parts_) TUTTI_RETURN_IF_ERROR(part.transport->unregister_memory(memory));
  return {};
}

Post RoutedTransport::posted(int peer, Post post) {
  if (post != Post::posted) return post;
  std::atomic<int64_t>& pending = parts_[static_cast<size_t>(way_to(peer))].pending;
  // pairs with idle: relaxed, a hint. The owner alone writes it.
  pending.store(pending.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return post;
}

Post RoutedTransport::post_send(const SendRequest& request) {
  const int peer = request.to.front().peer;
  return posted(peer, to(peer).post_send(request));
}

Post RoutedTransport::post_recv(const RecvRequest& request) {
  return posted(request.from.peer, to(request.from.peer).post_recv(request));
}

Post RoutedTransport::post_reduce(const ReduceRequest& request) {
  const auto message = std::ranges::find_if(request.operands, [](const auto& one) { return one.from.peer >= 0; });
  return posted(message->from.peer, to(message->from.peer).post_reduce(request));
}

size_t RoutedTransport::poll(std::span<Completion> completions) {
  ++looks_;
  size_t count = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[(looks_ + i) % parts_.size()];  // each is first in turn, where there is not room for all
    const int64_t pending = part.pending.load(std::memory_order_relaxed);  // ours
    if (pending == 0 && looks_ % kRareLook != 0) continue;
    const size_t taken = part.transport->poll(completions.subspan(count));
    count += taken;
    // pairs with idle: relaxed, a hint.
    if (taken > 0) part.pending.store(std::max<int64_t>(pending - int64_t(taken), 0), std::memory_order_relaxed);
  }
  return count;
}

// How many of the channel's requests were pending nobody counts. Too few in the end means fewer looks until what is
// pending has completed, too many would mean more for ever.
void RoutedTransport::cancel(uint64_t channel) {
  for (Part& part : parts_) {
    part.transport->cancel(channel);
    part.pending.store(0, std::memory_order_relaxed);  // pairs with idle: a hint
  }
}

void RoutedTransport::forget(uint64_t channel) {
  for (Part& part : parts_) part.transport->forget(channel);
}

PeerFailure RoutedTransport::take_failure() {
  for (Part& part : parts_)
    if (PeerFailure failure = part.transport->take_failure(); failure.peer >= 0) return failure;
  return {};
}

void RoutedTransport::idle(Deadline deadline) {
  // pairs with posted and poll: relaxed, a hint; who sleeps in the wrong part wakes at the end of his nap.
  const auto is_wanted = [](const Part& part) { return part.pending.load(std::memory_order_relaxed) > 0; };
  if (std::ranges::count_if(parts_, is_wanted) == 1)
    return std::ranges::find_if(parts_, is_wanted)->transport->idle(deadline);
  const uint64_t turn = naps_.fetch_add(1, std::memory_order_relaxed);  // any order of turns will do
  parts_[turn % parts_.size()].transport->idle(std::min(deadline, Deadline::after_us(kNapUs)));
}

}  // namespace tutti::internal
