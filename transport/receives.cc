#include "transport/receives.h"

#include <algorithm>
#include <cstring>

namespace tutti::internal {
namespace {

constexpr size_t kSmallCapacity = 4;

Operand* find_posted(const Correspondent& from, const Tag& tag) {
  Operand* operand = from.posted.front();
  while (operand != nullptr && !(operand->match == tag.match && operand->request->channel == tag.channel))
    operand = operand->next;
  return operand;
}

}  // namespace

Unexpected* Correspondent::find_unexpected(uint64_t channel, uint64_t match) const {
  Unexpected* entry = unexpected.front();
  while (entry != nullptr && !(entry->match == match && entry->channel == channel)) entry = entry->next;
  return entry;
}

bool Correspondent::has_left_behind(uint64_t channel, uint64_t match) const {
  const Unexpected* const early = find_unexpected(channel, match);
  return early != nullptr && !early->is_offer;
}

Receives::Receives(size_t short_bytes, Completions& completions, const std::unordered_set<uint64_t>& cancelled)
    : short_bytes_(short_bytes), completions_(completions), cancelled_(cancelled) {
  for (size_t i = 0; i < kUsualRequests; ++i) add_request(kSmallCapacity);
  unexpected_.fill(kUsualRequests);
}

void Receives::add_request(size_t capacity) {
  Request& fresh = requests_.emplace_back();
  fresh.capacity = capacity;
  fresh.operands = std::make_unique<Operand[]>(capacity);
  for (Part& part : fresh.parts) part.chunks.resize(capacity, -1);
  (capacity == kSmallCapacity ? free_small_ : free_large_).push_back(&fresh);
}

Request& Receives::acquire(size_t operand_count) {
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
  for (Operand& operand : request.all_operands()) operand.from = nullptr;
  return request;
}

void Receives::release(Request& request) {
  request.live = false;
  (request.capacity == kSmallCapacity ? free_small_ : free_large_).push_back(&request);
}

Post Receives::receive(const RecvRequest& posted, Correspondent& from) {
  Request& request = acquire(1);
  request.channel = posted.channel;
  request.ticket = posted.ticket;
  request.dst = static_cast<std::byte*>(posted.data);
  request.bytes = posted.bytes;
  expect(request, request.operands[0], from, posted.from.match);
  return begin(request);
}

Post Receives::reduce(const ReduceRequest& posted, std::span<Correspondent* const> from) {
  Request& request = acquire(from.size());
  request.channel = posted.channel;
  request.ticket = posted.ticket;
  request.dst = static_cast<std::byte*>(posted.dst);
  request.bytes = posted.element_count * posted.reduction.element_bytes;
  request.reduction = posted.reduction;
  request.message_count = static_cast<int>(from.size()) - static_cast<int>(std::ranges::count(from, nullptr));
  for (size_t i = 0; i < from.size() && request.live; ++i) {
    Operand& operand = request.operands[i];
    if (from[i] != nullptr) {
      expect(request, operand, *from[i], posted.operands[i].from.match);
    } else {
      operand.source = static_cast<const std::byte*>(posted.operands[i].local);
    }
  }
  return begin(request);
}

void Receives::expect(Request& request, Operand& operand, Correspondent& from, uint64_t match) {
  operand.request = &request;
  operand.from = &from;
  operand.match = match;
  operand.source = nullptr;
  operand.offered = operand.arrived = false;
  operand.posted = true;
  from.posted.push_back(operand);
  ++request.missing;
  Unexpected* const early = from.find_unexpected(request.channel, match);
  if (early == nullptr) return;
  from.unexpected.erase(*early);
  if (early->is_offer) {
    take_offer(operand, early->offer);
  } else {
    take_message(operand, early->data);
  }
  unexpected_.give(*early);
}

Post Receives::begin(Request& request) {
  if (!request.live) return Post::posted;  // a mismatch, already told
  if (request.bytes > short_bytes_) {
    move(request);
    return Post::posted;
  }
  if (request.missing > 0) return Post::posted;
  if (request.reduces()) reduce_short(request);
  unpost_all(request);
  release(request);
  return Post::done;
}

void Receives::on_message(Correspondent& from, const Tag& tag, std::span<const std::byte> data) {
  if (Operand* const operand = find_posted(from, tag)) {
    Request& request = *operand->request;
    // The last one of a reduction is used where it lies.
    const bool is_last = request.missing == 1 && request.reduces() && data.size() == request.bytes;
    if (is_last) {
      operand->source = data.data();
    } else {
      take_message(*operand, data);
      if (!request.live || request.missing > 0) return;
    }
    if (request.reduces()) reduce_short(request);
    return complete(request, Code::ok, 0);
  }
  if (!cancelled_.empty() && cancelled_.contains(tag.channel)) return;
  Unexpected& entry = unexpected_.take();
  entry.channel = tag.channel;
  entry.match = tag.match;
  entry.is_offer = false;
  entry.data.assign(data.begin(), data.end());
  from.unexpected.push_back(entry);
}

// Into its place, or aside until the others are there. May end the request.
void Receives::take_message(Operand& operand, std::span<const std::byte> data) {
  Request& request = *operand.request;
  if (data.size() != request.bytes) return fail_length(operand, data.size());
  if (!request.reduces()) {
    if (!data.empty()) std::memcpy(request.dst, data.data(), data.size());
  } else {
    operand.kept.assign(data.begin(), data.end());
    operand.source = operand.kept.data();
  }
  operand.arrived = true;
  unpost(operand);
  --request.missing;
}

void Receives::reduce_short(Request& request) {
  std::array<const void*, kMaxOperands> sources;
  std::ranges::transform(request.all_operands(), sources.begin(), &Operand::source);
  const Reduction& reduction = request.reduction;
  reduction.kernel(request.dst, sources.data(), request.operand_count, request.bytes / reduction.element_bytes,
                   reduction.divisor);
}

void Receives::on_offer(Correspondent& from, const Tag& tag, const Offer& offer) {
  if (Operand* const operand = find_posted(from, tag)) {
    Request& request = *operand->request;
    if (take_offer(*operand, offer)) move(request);
    return;
  }
  if (!cancelled_.empty() && cancelled_.contains(tag.channel)) return answer(from, tag, offer.id, Code::ok, 0);
  Unexpected& entry = unexpected_.take();
  entry.channel = tag.channel;
  entry.match = tag.match;
  entry.is_offer = true;
  entry.offer = offer;
  from.unexpected.push_back(entry);
}

bool Receives::take_offer(Operand& operand, const Offer& offer) {
  Request& request = *operand.request;
  if (offer.bytes == request.bytes) {
    operand.offered = true;
    operand.offer = offer.id;
    return true;
  }
  answer(*operand.from, {request.channel, operand.match}, offer.id, Code::mismatch, request.bytes);
  fail_length(operand, offer.bytes);
  return false;
}

void Receives::fail_length(Operand& operand, uint64_t found_bytes) {
  Request& request = *operand.request;
  completions_.push(request.channel, {request.ticket, Code::mismatch, found_bytes});
  drop(request);
}

void Receives::complete(Request& request, Code code, size_t found_bytes) {
  completions_.push(request.channel, {request.ticket, code, found_bytes});
  unpost_all(request);
  release(request);
}

void Receives::unpost(Operand& operand) {
  if (operand.posted) operand.from->posted.erase(operand);
  operand.posted = false;
}

void Receives::unpost_all(Request& request) {
  for (Operand& operand : request.all_operands())
    if (operand.from != nullptr) unpost(operand);
}

void Receives::drop(Request& request) {
  give_up(request);
  unpost_all(request);
  release(request);
}

void Receives::drop_all(uint64_t channel) {
  for (Request& request : requests_)
    if (request.live && request.channel == channel) drop(request);
}

void Receives::drop_unexpected(Correspondent& from, uint64_t channel, bool tell) {
  for (Unexpected* entry = from.unexpected.front(); entry != nullptr;) {
    Unexpected* const next = entry->next;
    if (entry->channel == channel) {
      if (tell && entry->is_offer) answer(from, {channel, entry->match}, entry->offer.id, Code::ok, 0);
      from.unexpected.erase(*entry);
      unexpected_.give(*entry);
    }
    entry = next;
  }
}

bool Receives::has_heard(const Correspondent& from, uint64_t channel, uint64_t first, uint64_t count) const {
  const auto is_meant = [&](uint64_t match) { return match - first < count; };
  for (const Unexpected* entry = from.unexpected.front(); entry != nullptr; entry = entry->next)
    if (entry->channel == channel && is_meant(entry->match)) return true;
  return std::ranges::any_of(requests_, [&](const Request& request) {
    return request.live && request.channel == channel &&
           std::ranges::any_of(request.all_operands(), [&](const Operand& operand) {
             return operand.from == &from && (operand.arrived || operand.offered) && is_meant(operand.match);
           });
  });
}

}  // namespace tutti::internal
