#include "transport/shm/receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "transport/shm/message.h"
#include "transport/shm/tuning.h"

namespace tutti::internal::shm {
namespace {

constexpr int kSmallCapacity = 4;

}  // namespace

Receiver::Receiver(Connector& connector, Completions& completions)
    : connector_(connector),
      completions_(completions),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(kMaxOperands * kReadChunkBytes)) {
  for (size_t i = 0; i < kUsualRequests; ++i) add_request(kSmallCapacity);
  unexpected_.fill(kUsualRequests);
}

void Receiver::add_request(int capacity) {
  Request& fresh = requests_.emplace_back();
  fresh.index = static_cast<uint32_t>(requests_.size() - 1);
  fresh.capacity = capacity;
  fresh.operands = std::make_unique<Operand[]>(static_cast<size_t>(capacity));
  (capacity == kSmallCapacity ? free_small_ : free_large_).push_back(&fresh);
}

Request& Receiver::acquire(int operand_count) {
  const int capacity = operand_count <= kSmallCapacity ? kSmallCapacity : kMaxOperands;
  auto& free = capacity == kSmallCapacity ? free_small_ : free_large_;
  if (free.empty()) add_request(capacity);
  Request& request = *free.back();
  free.pop_back();
  request.live = true;
  request.done_bytes = 0;
  request.operand_count = operand_count;
  request.missing = 0;
  request.message_count = 1;
  request.reduction = {};
  for (int i = 0; i < operand_count; ++i) request.operands[static_cast<size_t>(i)].peer = nullptr;
  return request;
}

void Receiver::release(Request& request) {
  request.live = false;
  ++request.generation;
  (request.capacity == kSmallCapacity ? free_small_ : free_large_).push_back(&request);
}

Post Receiver::receive(const RecvRequest& posted, Peer& peer) {
  Request& request = acquire(1);
  request.channel = posted.channel;
  request.ticket = posted.ticket;
  request.dst = static_cast<std::byte*>(posted.data);
  request.bytes = posted.bytes;
  expect(request, request.operands[0], peer, posted.from.match);
  return begin(request);
}

Post Receiver::reduce(const ReduceRequest& posted, std::span<Peer* const> peers) {
  Request& request = acquire(static_cast<int>(peers.size()));
  request.channel = posted.channel;
  request.ticket = posted.ticket;
  request.dst = static_cast<std::byte*>(posted.dst);
  request.bytes = posted.element_count * posted.reduction.element_bytes;
  request.reduction = posted.reduction;
  request.message_count =
      static_cast<int>(peers.size() - static_cast<size_t>(std::count(peers.begin(), peers.end(), nullptr)));
  for (size_t i = 0; i < peers.size() && request.live; ++i) {
    Operand& operand = request.operands[i];
    if (peers[i] != nullptr) {
      expect(request, operand, *peers[i], posted.operands[i].from.match);
    } else {
      operand.source = static_cast<const std::byte*>(posted.operands[i].local);
    }
  }
  return begin(request);
}

void Receiver::expect(Request& request, Operand& operand, Peer& peer, uint64_t match) {
  operand.request = &request;
  operand.peer = &peer;
  operand.match = match;
  operand.source = nullptr;
  operand.posted = operand.arrived = false;
  operand.streamed_bytes = 0;
  operand.bounce.clear();
  ++request.missing;
  Unexpected* const early = peer.inbox.find_unexpected(request.channel, match);
  if (early == nullptr) {
    operand.posted = true;
    peer.inbox.posted.push_back(operand);
    return;
  }
  peer.inbox.unexpected.erase(*early);
  operand.message = early->message;
  unexpected_.give(*early);
  (void)join(operand);
}

Post Receiver::begin(Request& request) {
  if (!request.live || request.missing > 0) return Post::posted;  // not live: a mismatch, already told
  if (request.bytes > kPieceBytes) {
    on_all_arrived(request);
    return Post::posted;
  }
  if (advance(request) != Progress::finished) return Post::posted;
  const Code code = settle(request);
  if (code == Code::ok) {
    release(request);
    return Post::done;
  }
  complete(request, code, 0);
  return Post::posted;
}

bool Receiver::on_message(Peer& peer, const Cell& cell) {
  if (!is_sound(peer, cell)) return false;
  if (Operand* const operand = peer.inbox.find_posted(cell.channel, cell.match)) {
    peer.inbox.posted.erase(*operand);
    operand->posted = false;
    Request& request = *operand->request;
    take_message(peer.in(), cell, operand->message);
    if (join(*operand) && request.missing == 0) on_all_arrived(request);
    return true;
  }
  Unexpected& entry = unexpected_.take();
  take_message(peer.in(), cell, entry.message);
  if (!cancelled_.empty() && cancelled_.contains(cell.channel)) {
    done_with(peer, entry.message, Code::ok, 0);
    unexpected_.give(entry);
    return true;
  }
  peer.inbox.unexpected.push_back(entry);
  return true;
}

bool Receiver::join(Operand& operand) {
  Request& request = *operand.request;
  if (const uint64_t found = message_bytes(operand.message); found != request.bytes) {
    fail_lengths(operand, found);
    return false;
  }
  if (operand.message.kind == CellKind::stream) {
    // Bytes that can be used as they come go straight to their place; others wait for the other operands.
    if (request.message_count > 1) operand.bounce.resize(request.bytes);
    const auto index = static_cast<uint32_t>(&operand - request.operands.get());
    operand.peer->write(CellKind::go,
                        GoBody{body<OfferBody>(operand.message).id, {request.index, request.generation, index}});
    return true;
  }
  operand.arrived = true;
  operand.source = readable(*operand.peer, operand.message);
  --request.missing;
  return true;
}

void Receiver::on_all_arrived(Request& request) {
  if (request.bytes > kPieceBytes) {
    request.working = true;
    working_.push_back(request);
    return;
  }
  if (advance(request) == Progress::finished) complete(request, settle(request), 0);
}

bool Receiver::advance_work() {
  Request* const request = working_.pop_front();
  if (request == nullptr) return false;
  request->working = false;
  const Progress progress = advance(*request);
  if (progress == Progress::more) {
    request->working = true;
    working_.push_back(*request);
  } else if (progress == Progress::finished) {
    complete(*request, settle(*request), 0);
  }
  return true;
}

void Receiver::fail_lengths(Operand& operand, uint64_t found_bytes) {
  Request& request = *operand.request;
  done_with(*operand.peer, operand.message, Code::mismatch, request.bytes);
  drop(request);
  completions_.push(request.channel, {request.ticket, Code::mismatch, found_bytes});
}

Code Receiver::settle(Request& request) {
  Code code = Code::ok;
  for (int i = 0; i < request.operand_count; ++i) {
    Operand& operand = request.operands[static_cast<size_t>(i)];
    if (operand.peer == nullptr) continue;
    if (!operand.bounce.empty()) operand.bounce = {};
    if (is_offer(operand.message) && operand.streamed_bytes == 0 &&
        operand.peer->has_withdrawn(body<OfferBody>(operand.message).id))
      code = Code::aborted;
    else if (operand.streamed_bytes == 0)
      done_with(*operand.peer, operand.message, Code::ok, 0);
  }
  return code;
}

void Receiver::complete(Request& request, Code code, size_t found_bytes) {
  completions_.push(request.channel, {request.ticket, code, found_bytes});
  release(request);
}

void Receiver::done_with(Peer& peer, const Message& message, Code code, uint64_t found_bytes) {
  if (message.kind == CellKind::staged)
    peer.release_slot(body<StagedBody>(message).slot);
  else if (message.kind != CellKind::inlined)
    peer.write(CellKind::ack, AckBody{body<OfferBody>(message).id, found_bytes, static_cast<uint64_t>(code)});
}

void Receiver::leave_lists(Request& request) {
  if (request.working) working_.erase(request);
  request.working = false;
  for (int i = 0; i < request.operand_count; ++i) {
    Operand& operand = request.operands[static_cast<size_t>(i)];
    if (operand.peer != nullptr && operand.posted) operand.peer->inbox.posted.erase(operand);
    operand.posted = false;
  }
}

// Takes a request back before its time: messages that came are done with, others will find nobody.
void Receiver::drop(Request& request) {
  leave_lists(request);
  for (int i = 0; i < request.operand_count; ++i) {
    Operand& operand = request.operands[static_cast<size_t>(i)];
    if (operand.peer != nullptr && operand.arrived && operand.streamed_bytes == 0)
      done_with(*operand.peer, operand.message, Code::ok, 0);
  }
  release(request);
}

bool Receiver::has_heard(const Peer& peer, uint64_t channel, uint64_t first, uint64_t count) const {
  const auto is_meant = [&](uint64_t match) { return match - first < count; };
  for (const Unexpected* entry = peer.inbox.unexpected.front(); entry != nullptr; entry = entry->next)
    if (entry->message.channel == channel && is_meant(entry->message.match)) return true;
  return std::ranges::any_of(requests_, [&](const Request& request) {
    const std::span operands(request.operands.get(), static_cast<size_t>(request.operand_count));
    return request.live && request.channel == channel && std::ranges::any_of(operands, [&](const Operand& operand) {
             return operand.peer == &peer && operand.arrived && is_meant(operand.match);
           });
  });
}

void Receiver::cancel(uint64_t channel) {
  cancelled_.insert(channel);
  for (Request& request : requests_)
    if (request.live && request.channel == channel) drop(request);
  for (size_t i = 0; i < connector_.active_count(); ++i) {
    Peer& peer = connector_.active(i);
    for (Unexpected* entry = peer.inbox.unexpected.front(); entry != nullptr;) {
      Unexpected* const next = entry->next;
      if (entry->message.channel == channel) {
        done_with(peer, entry->message, Code::ok, 0);
        peer.inbox.unexpected.erase(*entry);
        unexpected_.give(*entry);
      }
      entry = next;
    }
  }
}

}  // namespace tutti::internal::shm
