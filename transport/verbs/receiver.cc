#include "transport/verbs/receiver.h"

#include <algorithm>
#include <cstring>

namespace tutti::internal::verbs {
namespace {

constexpr size_t kSmallCapacity = 4;
// Beyond, long messages wait: then as many are under way as make sense.
constexpr uint32_t kMostGrants = 1024;
static_assert(kMostGrants <= Immediate::kMaxIndex + 1);

bool is_long(const Request& request) { return request.bytes > kShortBytes; }

std::span<Operand> operands_of(const Request& request) {
  return {request.operands.get(), static_cast<size_t>(request.operand_count)};
}

}  // namespace

Receiver::Receiver(Registrar& registrar, Staging& staging, Completions& completions,
                   const std::unordered_set<uint64_t>& cancelled)
    : registrar_(registrar), staging_(staging), completions_(completions), cancelled_(cancelled) {
  for (size_t i = 0; i < kUsualRequests; ++i) add_request(kSmallCapacity);
  unexpected_.fill(kUsualRequests);
  granted_.resize(kMostGrants);
  for (uint32_t index = kMostGrants; index-- > 0;) free_granted_.push_back(index);
}

void Receiver::add_request(size_t capacity) {
  Request& fresh = requests_.emplace_back();
  fresh.capacity = capacity;
  fresh.operands = std::make_unique<Operand[]>(capacity);
  for (Part& part : fresh.parts) part.chunks.resize(capacity, -1);
  (capacity == kSmallCapacity ? free_small_ : free_large_).push_back(&fresh);
}

Request& Receiver::acquire(size_t operand_count) {
  const size_t capacity = operand_count <= kSmallCapacity ? kSmallCapacity : kMaxOperands;
  auto& free = capacity == kSmallCapacity ? free_small_ : free_large_;
  if (free.empty()) add_request(capacity);
  Request& request = *free.back();
  free.pop_back();
  request.live = true;
  request.operand_count = static_cast<int>(operand_count);
  request.message_count = 1;
  request.missing = 0;
  request.asked_bytes = request.done_bytes = 0;
  request.reduction = {};
  for (Operand& operand : operands_of(request)) operand.peer = nullptr;
  return request;
}

void Receiver::release(Request& request) {
  request.live = false;
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
  Request& request = acquire(peers.size());
  request.channel = posted.channel;
  request.ticket = posted.ticket;
  request.dst = static_cast<std::byte*>(posted.dst);
  request.bytes = posted.element_count * posted.reduction.element_bytes;
  request.reduction = posted.reduction;
  request.message_count = static_cast<int>(peers.size()) - static_cast<int>(std::ranges::count(peers, nullptr));
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
  operand.offered = operand.arrived = false;
  operand.posted = true;
  peer.inbox.posted.push_back(operand);
  ++request.missing;
  Unexpected* const early = peer.inbox.find_unexpected(request.channel, match);
  if (early == nullptr) return;
  peer.inbox.unexpected.erase(*early);
  if (early->is_offer) {
    take_offer(operand, early->bytes, early->offer);
  } else {
    take_message(operand, early->data);
  }
  unexpected_.give(*early);
}

Post Receiver::begin(Request& request) {
  if (!request.live) return Post::posted;  // a mismatch, already told
  if (is_long(request)) {
    if (!grant_in_place(request)) feed(request);
    return Post::posted;
  }
  if (request.missing > 0) return Post::posted;
  if (request.reduction.kernel != nullptr) reduce_short(request);
  leave_lists(request);
  release(request);
  return Post::done;
}

// ---- Short messages ----------------------------------------------------------------------------------------------

void Receiver::on_message(Peer& peer, const Header& header, std::span<const std::byte> data) {
  if (Operand* const operand = peer.inbox.find_posted(header.channel, header.match)) {
    Request& request = *operand->request;
    // The last one of a reduction is used where it lies.
    const bool is_last = request.missing == 1 && request.reduction.kernel != nullptr && data.size() == request.bytes;
    if (is_last) {
      operand->source = data.data();
    } else {
      take_message(*operand, data);
      if (!request.live || request.missing > 0) return;
    }
    if (request.reduction.kernel != nullptr) reduce_short(request);
    return complete(request, Code::ok, 0);
  }
  if (!cancelled_.empty() && cancelled_.contains(header.channel)) return;
  Unexpected& entry = unexpected_.take();
  entry.channel = header.channel;
  entry.match = header.match;
  entry.bytes = data.size();
  entry.is_offer = false;
  entry.data.assign(data.begin(), data.end());
  peer.inbox.unexpected.push_back(entry);
}

// Into its place, or aside until the others are there. May end the request.
void Receiver::take_message(Operand& operand, std::span<const std::byte> data) {
  Request& request = *operand.request;
  if (data.size() != request.bytes) return fail_length(operand, data.size());
  if (request.reduction.kernel == nullptr) {
    if (!data.empty()) std::memcpy(request.dst, data.data(), data.size());
  } else {
    operand.kept.assign(data.begin(), data.end());
    operand.source = operand.kept.data();
  }
  operand.arrived = true;
  unpost(operand);
  --request.missing;
}

void Receiver::reduce_short(Request& request) {
  std::array<const void*, kMaxOperands> sources;
  const auto operands = operands_of(request);
  std::ranges::transform(operands, sources.begin(), &Operand::source);
  const Reduction& reduction = request.reduction;
  reduction.kernel(request.dst, sources.data(), request.operand_count, request.bytes / reduction.element_bytes,
                   reduction.divisor);
}

// ---- Long messages -----------------------------------------------------------------------------------------------

void Receiver::on_offer(Peer& peer, const Header& header, const OfferBody& offer) {
  if (Operand* const operand = peer.inbox.find_posted(header.channel, header.match)) {
    take_offer(*operand, offer.bytes, offer.id);
    return;
  }
  if (!cancelled_.empty() && cancelled_.contains(header.channel)) {
    peer.control(Kind::answer, header.channel, header.match, AnswerBody{offer.id, 0, 0});
    return;
  }
  Unexpected& entry = unexpected_.take();
  entry.channel = header.channel;
  entry.match = header.match;
  entry.bytes = offer.bytes;
  entry.is_offer = true;
  entry.offer = offer.id;
  peer.inbox.unexpected.push_back(entry);
}

// May end the request.
void Receiver::take_offer(Operand& operand, uint64_t bytes, const SendId& id) {
  Request& request = *operand.request;
  operand.offered = true;
  if (bytes == request.bytes) return;
  operand.peer->control(Kind::answer, request.channel, operand.match,
                        AnswerBody{id, request.bytes, static_cast<uint64_t>(Code::mismatch)});
  fail_length(operand, bytes);
}

// Whether the message was granted whole, or needs no staging memory for another reason.
bool Receiver::grant_in_place(Request& request) {
  if (request.reduction.kernel != nullptr || free_granted_.empty()) return false;
  const Registration* const target = registrar_.acquire(request.dst, request.bytes, true, nullptr);
  if (target == nullptr) return false;
  Granted place;
  place.request = &request;
  place.target = target;
  place.bytes = request.bytes;
  grant(request.operands[0], place, 0, request.dst, *target);
  return true;
}

// Grants as many parts as there is staging memory for, or waits for some.
bool Receiver::feed(Request& request) {
  bool moved = false;
  for (size_t part = 0; part < request.parts.size(); ++part) {
    if (request.parts[part].under_way || request.asked_bytes == request.bytes) continue;
    if (!may_stage(request)) break;
    grant_part(request, static_cast<int>(part));
    moved = true;
  }
  const bool wants_more = request.asked_bytes < request.bytes;
  if (wants_more != request.hungry) wants_more ? hungry_.push_back(request) : hungry_.erase(request);
  request.hungry = wants_more;
  return moved;
}

bool Receiver::may_stage(const Request& request) {
  if (!staging_.prepare().ok()) return false;
  const auto wanted = static_cast<size_t>(request.message_count);
  const auto is_there = [](const Operand& operand) { return operand.peer == nullptr || operand.offered; };
  const size_t kept_back = std::ranges::all_of(operands_of(request), is_there) ? 0 : kChunkCount / 2;
  return staging_.available() >= wanted + kept_back && free_granted_.size() >= wanted;
}

void Receiver::grant_part(Request& request, int index) {
  Part& part = request.parts[static_cast<size_t>(index)];
  part.under_way = true;
  part.offset = request.asked_bytes;
  part.bytes = std::min<uint64_t>(kChunkBytes, request.bytes - request.asked_bytes);
  part.missing = request.message_count;
  request.asked_bytes += part.bytes;
  std::ranges::fill(part.chunks, -1);
  for (int i = 0; i < request.operand_count; ++i) {
    Operand& operand = request.operands[static_cast<size_t>(i)];
    if (operand.peer == nullptr) continue;
    Granted place;
    place.request = &request;
    place.operand = i;
    place.part = index;
    place.chunk = staging_.take();
    place.bytes = part.bytes;
    grant(operand, place, part.offset, staging_.data(place.chunk), staging_.registration());
  }
}

void Receiver::grant(Operand& operand, const Granted& what, uint64_t offset, void* memory,
                     const Registration& registration) {
  const uint32_t index = free_granted_.back();
  free_granted_.pop_back();
  Granted& granted = granted_[index];
  const uint32_t generation = (granted.generation + 1) % Immediate::kGenerations;
  granted = what;
  granted.live = true;
  granted.generation = generation;
  granted.peer = operand.peer;
  granted.channel = operand.request->channel;
  GrantBody body;
  body.message_bytes = operand.request->bytes;
  body.offset = offset;
  body.bytes = what.bytes;
  body.address = reinterpret_cast<uint64_t>(memory);
  body.immediate = Immediate{index, generation}.pack();
  for (size_t i = 0; i < operand.peer->pairs.size(); ++i)
    body.keys[i] = registration.keys[static_cast<size_t>(operand.peer->pairs[i]->port_index())].remote;
  operand.peer->control(Kind::grant, granted.channel, operand.match, body);
}

// Null: it is over.
Receiver::Granted* Receiver::find_granted(const Peer& peer, uint32_t word) {
  const Immediate immediate = Immediate::unpack(word);
  if (immediate.index >= granted_.size()) return nullptr;
  Granted& granted = granted_[immediate.index];
  return granted.live && granted.generation == immediate.generation && granted.peer == &peer ? &granted : nullptr;
}

void Receiver::end(Granted& granted) {
  granted.live = false;
  if (granted.target != nullptr) registrar_.release(granted.target);
  if (granted.chunk >= 0) staging_.give(granted.chunk);
  free_granted_.push_back(static_cast<uint32_t>(&granted - granted_.data()));
}

void Receiver::on_immediate(Peer& peer, uint32_t word) {
  Granted* const found = find_granted(peer, word);
  if (found == nullptr || ++found->arrivals < Immediate::unpack(word).stripes) return;
  const Granted granted = *found;
  Request* const request = granted.request;
  if (request == nullptr) return end(*found);
  if (granted.part < 0) {
    direct_bytes_ += granted.bytes;
    end(*found);
    return complete(*request, Code::ok, 0);
  }
  staged_bytes_ += granted.bytes;
  found->chunk = -1;  // now the part's
  end(*found);
  Part& part = request->parts[static_cast<size_t>(granted.part)];
  part.chunks[static_cast<size_t>(granted.operand)] = granted.chunk;
  if (--part.missing == 0) use_part(*request, part);
}

void Receiver::use_part(Request& request, Part& part) {
  const auto operands = operands_of(request);
  std::byte* const to = request.dst + part.offset;
  std::array<const void*, kMaxOperands> sources;
  for (size_t i = 0; i < operands.size(); ++i)
    sources[i] = operands[i].peer != nullptr ? staging_.data(part.chunks[i]) : operands[i].source + part.offset;
  const Reduction& reduction = request.reduction;
  if (reduction.kernel == nullptr) {
    std::memcpy(to, sources[0], part.bytes);
  } else {
    reduction.kernel(to, sources.data(), request.operand_count, part.bytes / reduction.element_bytes,
                     reduction.divisor);
  }
  give_chunks(part);
  request.done_bytes += part.bytes;
  if (request.done_bytes == request.bytes) return complete(request, Code::ok, 0);
  feed(request);
}

void Receiver::give_chunks(Part& part) {
  part.under_way = false;
  for (int& chunk : part.chunks) {
    if (chunk >= 0) staging_.give(chunk);
    chunk = -1;
  }
}

// The sender has given up: what it had not written does not come.
void Receiver::on_withdrawn(Peer& peer, const GrantName& name) {
  Granted* const found = find_granted(peer, name.immediate);
  if (found == nullptr) return;
  Request* const request = found->request;
  end(*found);
  if (request == nullptr) return;
  completions_.push(request->channel, {request->ticket, Code::aborted, 0});
  drop(*request);
}

bool Receiver::advance() {
  bool moved = false;
  for (Request* request = hungry_.front(); request != nullptr;) {
    Request* const next = request->next;
    moved |= feed(*request);
    request = next;
  }
  return moved;
}

// ---- Ends --------------------------------------------------------------------------------------------------------

void Receiver::fail_length(Operand& operand, uint64_t found_bytes) {
  Request& request = *operand.request;
  completions_.push(request.channel, {request.ticket, Code::mismatch, found_bytes});
  drop(request);
}

void Receiver::complete(Request& request, Code code, size_t found_bytes) {
  completions_.push(request.channel, {request.ticket, code, found_bytes});
  leave_lists(request);
  release(request);
}

void Receiver::unpost(Operand& operand) {
  if (operand.posted) operand.peer->inbox.posted.erase(operand);
  operand.posted = false;
}

void Receiver::leave_lists(Request& request) {
  if (request.hungry) hungry_.erase(request);
  request.hungry = false;
  for (Operand& operand : operands_of(request))
    if (operand.peer != nullptr) unpost(operand);
}

void Receiver::drop(Request& request) {
  const bool is_partly_granted = request.hungry;
  leave_lists(request);
  for (Part& part : request.parts) give_chunks(part);
  for (Granted& granted : granted_) {
    if (!granted.live || granted.request != &request) continue;
    granted.request = nullptr;
    const uint32_t index = static_cast<uint32_t>(&granted - granted_.data());
    granted.peer->control(Kind::revoke, granted.channel, 0, GrantName{Immediate{index, granted.generation}.pack()});
  }
  if (is_partly_granted)
    for (const Operand& operand : operands_of(request))
      if (operand.peer != nullptr) operand.peer->control(Kind::enough, request.channel, operand.match);
  release(request);
}

void Receiver::cancel(uint64_t channel, std::span<Peer* const> peers) {
  for (Request& request : requests_)
    if (request.live && request.channel == channel) drop(request);
  for (Peer* peer : peers) drop_unexpected(*peer, channel, true);
}

void Receiver::forget(uint64_t channel, std::span<Peer* const> peers) {
  for (Peer* peer : peers) drop_unexpected(*peer, channel, false);
}

void Receiver::drop_unexpected(Peer& peer, uint64_t channel, bool answer) {
  for (Unexpected* entry = peer.inbox.unexpected.front(); entry != nullptr;) {
    Unexpected* const next = entry->next;
    if (entry->channel == channel) {
      if (answer && entry->is_offer) peer.control(Kind::answer, channel, entry->match, AnswerBody{entry->offer, 0, 0});
      peer.inbox.unexpected.erase(*entry);
      unexpected_.give(*entry);
    }
    entry = next;
  }
}

bool Receiver::owes_answer(const Peer& peer, uint64_t channel) const {
  return std::ranges::any_of(granted_, [&](const Granted& granted) {
    return granted.live && granted.request == nullptr && granted.part < 0 && granted.peer == &peer &&
           granted.channel == channel;
  });
}

void Receiver::drop(const Peer& peer) {
  for (Granted& granted : granted_)
    if (granted.live && granted.peer == &peer) end(granted);
}

bool Receiver::has_heard(const Peer& peer, uint64_t channel, uint64_t first, uint64_t count) const {
  const auto is_meant = [&](uint64_t match) { return match - first < count; };
  for (const Unexpected* entry = peer.inbox.unexpected.front(); entry != nullptr; entry = entry->next)
    if (entry->channel == channel && is_meant(entry->match)) return true;
  return std::ranges::any_of(requests_, [&](const Request& request) {
    return request.live && request.channel == channel &&
           std::ranges::any_of(operands_of(request), [&](const Operand& operand) {
             return operand.peer == &peer && (operand.arrived || operand.offered) && is_meant(operand.match);
           });
  });
}

}  // namespace tutti::internal::verbs
