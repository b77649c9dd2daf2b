#include "transport/verbs/receiver.h"

#include <algorithm>
#include <cstring>

namespace tutti::internal::verbs {
namespace {

// Beyond, long messages wait: then as many are under way as make sense.
constexpr uint32_t kMostGrants = 1024;
static_assert(kMostGrants <= Immediate::kMaxIndex + 1);

Peer& peer_of(const Operand& operand) { return static_cast<Peer&>(*operand.from); }

}  // namespace

Receiver::Receiver(Registrar& registrar, Staging& staging, Completions& completions,
                   const std::unordered_set<uint64_t>& cancelled)
    : Receives(kShortBytes, completions, cancelled), registrar_(registrar), staging_(staging) {
  granted_.resize(kMostGrants);
  for (uint32_t index = kMostGrants; index-- > 0;) free_granted_.push_back(index);
}

void Receiver::move(Request& request) {
  if (request.asked_bytes == request.bytes) return;
  const bool is_new = request.asked_bytes == 0 && !request.hungry;
  if (!is_new || !grant_in_place(request)) feed(request);
}

void Receiver::answer(Correspondent& from, const Tag& tag, const SendId& id, Code code, uint64_t wanted_bytes) {
  static_cast<Peer&>(from).control(Kind::answer, tag.channel, tag.match,
                                   AnswerBody{id, wanted_bytes, static_cast<uint64_t>(code)});
}

// Whether the message was granted whole, or needs no staging memory for another reason.
bool Receiver::grant_in_place(Request& request) {
  if (request.reduces() || free_granted_.empty()) return false;
  const Registration* const target = registrar_.acquire(request.dst, request.bytes, true, nullptr);
  if (target == nullptr) return false;
  Granted place;
  place.request = &request;
  place.target = target;
  place.bytes = request.bytes;
  request.asked_bytes = request.bytes;
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
  const auto is_there = [](const Operand& operand) { return operand.from == nullptr || operand.offered; };
  const size_t kept_back = std::ranges::all_of(request.all_operands(), is_there) ? 0 : kChunkCount / 2;
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
    if (operand.from == nullptr) continue;
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
  granted.peer = &peer_of(operand);
  granted.channel = operand.request->channel;
  GrantBody body;
  body.message_bytes = operand.request->bytes;
  body.offset = offset;
  body.bytes = what.bytes;
  body.address = reinterpret_cast<uint64_t>(memory);
  body.immediate = Immediate{index, generation}.pack();
  for (size_t i = 0; i < granted.peer->pairs.size(); ++i)
    body.keys[i] = registration.keys[static_cast<size_t>(granted.peer->pairs[i]->port_index())].remote;
  granted.peer->control(Kind::grant, granted.channel, operand.match, body);
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
  const auto operands = request.all_operands();
  std::byte* const to = request.dst + part.offset;
  std::array<const void*, kMaxOperands> sources;
  for (size_t i = 0; i < operands.size(); ++i)
    sources[i] = operands[i].from != nullptr ? staging_.data(part.chunks[i]) : operands[i].source + part.offset;
  const Reduction& reduction = request.reduction;
  if (!request.reduces()) {
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
  give_up(*request);
  complete(*request, Code::aborted, 0);
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

void Receiver::give_up(Request& request) {
  const bool is_partly_granted = request.hungry;
  if (is_partly_granted) hungry_.erase(request);
  request.hungry = false;
  for (Part& part : request.parts) give_chunks(part);
  for (Granted& granted : granted_) {
    if (!granted.live || granted.request != &request) continue;
    granted.request = nullptr;
    const uint32_t index = static_cast<uint32_t>(&granted - granted_.data());
    granted.peer->control(Kind::revoke, granted.channel, 0, GrantName{Immediate{index, granted.generation}.pack()});
  }
  if (is_partly_granted)
    for (const Operand& operand : request.all_operands())
      if (operand.from != nullptr) peer_of(operand).control(Kind::enough, request.channel, operand.match);
}

void Receiver::cancel(uint64_t channel, std::span<Peer* const> peers) {
  drop_all(channel);
  for (Peer* peer : peers) drop_unexpected(*peer, channel, true);
}

void Receiver::forget(uint64_t channel, std::span<Peer* const> peers) {
  for (Peer* peer : peers) drop_unexpected(*peer, channel, false);
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

}  // namespace tutti::internal::verbs
