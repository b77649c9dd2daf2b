#include "transport/ucx/receiver.h"

#include <algorithm>
#include <cstring>

namespace tutti::internal::ucx {
namespace {

Peer& peer_of(const Operand& operand) { return static_cast<Peer&>(*operand.from); }

bool all_are_offered(const Request& request) {
  return std::ranges::all_of(request.all_operands(),
                             [](const Operand& operand) { return operand.from == nullptr || operand.offered; });
}

void give_chunks(Part& part, Staging& staging) {
  part.under_way = false;
  for (int& chunk : part.chunks) {
    if (chunk >= 0) staging.give(chunk);
    chunk = -1;
  }
}

}  // namespace

Receiver::Receiver(Worker& worker, Sender& sender, Completions& completions,
                   const std::unordered_set<uint64_t>& cancelled)
    : Receives(kShortBytes, completions, cancelled), worker_(worker), sender_(sender), staging_(worker) {
  granted_.resize(kUsualRequests);
  for (uint32_t index = kUsualRequests; index-- > 0;) free_granted_.push_back(index);
}

void Receiver::move(Request& request) {
  if (!all_are_offered(request)) return;
  if (request.reduces() && request.message_count > 1) {
    feed(request);
    return;
  }
  const auto message = std::ranges::find_if(request.all_operands(), &Operand::from);
  Granted place;
  place.request = &request;
  place.memory = request.dst;
  place.bytes = request.bytes;
  place.whole_pieces = request.reduces() || worker_.copies_anyway();
  place.operand = static_cast<int>(message - request.all_operands().begin());
  grant(*message, place, 0);
}

// Grants as many parts as there is staging memory for, or waits for some.
bool Receiver::feed(Request& request) {
  bool moved = false;
  const bool is_ready = staging_.prepare().ok();
  for (size_t part = 0; part < request.parts.size() && request.asked_bytes < request.bytes; ++part) {
    if (request.parts[part].under_way) continue;
    if (!is_ready || staging_.available() < static_cast<size_t>(request.message_count)) break;
    grant_part(request, static_cast<int>(part));
    moved = true;
  }
  wait_for_chunks(request, request.asked_bytes < request.bytes);
  return moved;
}

void Receiver::wait_for_chunks(Request& request, bool wants_more) {
  if (wants_more != request.hungry) wants_more ? hungry_.push_back(request) : hungry_.erase(request);
  request.hungry = wants_more;
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
    place.memory = staging_.data(place.chunk);
    place.bytes = part.bytes;
    place.whole_pieces = worker_.copies_anyway();
    grant(operand, place, part.offset);
  }
}

void Receiver::grant(Operand& operand, Granted what, uint64_t offset) {
  if (free_granted_.empty()) {
    granted_.emplace_back();
    free_granted_.push_back(static_cast<uint32_t>(granted_.size() - 1));
  }
  const uint32_t index = free_granted_.back();
  free_granted_.pop_back();
  what.receiver = this;
  what.live = true;
  what.index = index;
  what.generation = granted_[index].generation + 1;
  what.peer = &peer_of(operand);
  what.channel = operand.request->channel;
  granted_[index] = what;
  sender_.control(*what.peer, Kind::grant, {what.channel, operand.match},
                  GrantBody{.send = operand.offer,
                            .id = {index, what.generation},
                            .offset = offset,
                            .bytes = what.bytes,
                            .whole_pieces = what.whole_pieces});
}

// Null: it is over.
Receiver::Granted* Receiver::find(const Peer& peer, const GrantId& id) {
  if (id.index >= granted_.size()) return nullptr;
  Granted& granted = granted_[id.index];
  return granted.live && granted.generation == id.generation && granted.peer == &peer ? &granted : nullptr;
}

ucs_status_t Receiver::on_data(Peer& peer, const DataBody& body, const Piece& piece, bool& makes_sense) {
  Granted* const granted = find(peer, body.grant);
  if (granted == nullptr || granted->request == nullptr) return UCS_OK;  // nobody wants it any more
  makes_sense = body.offset <= granted->bytes && piece.bytes <= granted->bytes - body.offset;
  if (!makes_sense) return UCS_OK;
  std::byte* const to = granted->memory + body.offset;
  makes_sense = !piece.is_rendezvous || !granted->whole_pieces;
  if (!makes_sense) return UCS_OK;
  if (piece.is_rendezvous) return fetch(*granted, to, piece);
  if (granted->part < 0 && granted->request->reduces()) {
    makes_sense = combine(*granted->request, body.offset, piece);
    if (!makes_sense) return UCS_OK;
  } else {
    std::memcpy(to, piece.data, piece.bytes);
  }
  granted->arrived += piece.bytes;
  settle(*granted);
  return UCS_OK;
}

ucs_status_t Receiver::fetch(Granted& granted, std::byte* to, const Piece& piece) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = on_fetched;
  param.user_data = &granted;
  ++granted.receiving;
  void* const request = library().ucp_am_recv_data_nbx(worker_.get(), piece.data, to, piece.bytes, &param);
  if (UCS_PTR_IS_PTR(request)) return UCS_INPROGRESS;
  --granted.receiving;
  if (UCS_PTR_IS_ERR(request)) {
    if (granted.peer->error == UCS_OK) granted.peer->error = UCS_PTR_STATUS(request);
    return UCS_INPROGRESS;
  }
  granted.arrived += piece.bytes;
  settle(granted);
  return UCS_INPROGRESS;
}

void Receiver::on_fetched(void* request, ucs_status_t status, size_t bytes, void* user_data) {
  library().ucp_request_free(request);
  Granted& granted = *static_cast<Granted*>(user_data);
  --granted.receiving;
  if (status == UCS_OK) granted.arrived += bytes;
  granted.receiver->settle(granted);
}

void Receiver::settle(Granted& granted) {
  if (granted.receiving > 0) return;
  Request* const request = granted.request;
  if (request == nullptr) return end(granted);
  if (granted.arrived == granted.bytes) {
    const Granted whole = granted;
    granted.chunk = -1;  // the part's from now on
    end(granted);
    if (whole.part < 0) return complete(*request, Code::ok, 0);
    Part& part = request->parts[static_cast<size_t>(whole.part)];
    part.chunks[static_cast<size_t>(whole.operand)] = whole.chunk;
    if (--part.missing == 0) use_part(*request, part);
    return;
  }
  if (!granted.withdrawn) return;
  end(granted);
  request->all_operands()[static_cast<size_t>(granted.operand)].offered = false;  // it needs no answer
  give_up(*request);
  complete(*request, Code::aborted, 0);
}

// The one message of a reduction: its pieces are used where they lie.
bool Receiver::combine(Request& request, uint64_t offset, const Piece& piece) {
  const Reduction& reduction = request.reduction;
  if (offset % reduction.element_bytes != 0 || piece.bytes % reduction.element_bytes != 0) return false;
  std::array<const void*, kMaxOperands> sources;
  std::ranges::transform(request.all_operands(), sources.begin(), [&](const Operand& operand) {
    return operand.from != nullptr ? piece.data : operand.source + offset;
  });
  reduction.kernel(request.dst + offset, sources.data(), request.operand_count, piece.bytes / reduction.element_bytes,
                   reduction.divisor);
  return true;
}

void Receiver::use_part(Request& request, Part& part) {
  std::array<const void*, kMaxOperands> sources;
  const auto operands = request.all_operands();
  for (size_t i = 0; i < operands.size(); ++i)
    sources[i] = operands[i].from != nullptr ? staging_.data(part.chunks[i]) : operands[i].source + part.offset;
  const Reduction& reduction = request.reduction;
  reduction.kernel(request.dst + part.offset, sources.data(), request.operand_count,
                   part.bytes / reduction.element_bytes, reduction.divisor);
  give_chunks(part, staging_);
  request.done_bytes += part.bytes;
  if (request.done_bytes == request.bytes) return complete(request, Code::ok, 0);
  feed(request);
}

void Receiver::end(Granted& granted) {
  granted.live = false;
  if (granted.chunk >= 0) staging_.give(granted.chunk);
  free_granted_.push_back(granted.index);
}

// The sender has given up: what it had not sent does not come.
void Receiver::on_withdrawn(const Peer& peer, const WithdrawnBody& withdrawn) {
  Granted* const granted = find(peer, withdrawn.grant);
  if (granted == nullptr) return;
  granted->withdrawn = true;
  settle(*granted);
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

void Receiver::answer(Correspondent& from, const Tag& tag, const SendId& id, Code code, uint64_t wanted_bytes) {
  sender_.control(static_cast<Peer&>(from), Kind::answer, tag,
                  AnswerBody{.send = id, .code = static_cast<uint64_t>(code), .wanted_bytes = wanted_bytes});
}

void Receiver::give_up(Request& request) {
  wait_for_chunks(request, false);
  for (Part& part : request.parts) give_chunks(part, staging_);
  for (const Operand& operand : request.all_operands())
    if (operand.from != nullptr && operand.offered)
      answer(*operand.from, {request.channel, operand.match}, operand.offer, Code::ok, 0);
  for (Granted& granted : granted_) {
    if (!granted.live || granted.request != &request) continue;
    granted.request = nullptr;
    settle(granted);
  }
}

void Receiver::cancel(uint64_t channel, std::span<Peer* const> peers) {
  drop_all(channel);
  for (Peer* peer : peers) drop_unexpected(*peer, channel, true);
}

void Receiver::forget(uint64_t channel, std::span<Peer* const> peers) {
  for (Peer* peer : peers) drop_unexpected(*peer, channel, false);
}

bool Receiver::is_writing(const Peer& peer, uint64_t channel) const {
  return std::ranges::any_of(granted_, [&](const Granted& granted) {
    return granted.live && granted.request == nullptr && granted.part < 0 && granted.peer == &peer &&
           granted.channel == channel;
  });
}

// Their requests wait in vain; what UCX still writes is over when it says so.
void Receiver::drop(const Peer& peer) {
  for (Granted& granted : granted_)
    if (granted.live && granted.request == nullptr && granted.peer == &peer) settle(granted);
}

}  // namespace tutti::internal::ucx
