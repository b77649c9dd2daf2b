#include "transport/ucx/outbox.h"

#include <algorithm>

namespace tutti::internal::ucx {
namespace {

constexpr size_t kUsualReaders = 8;

}  // namespace

Outbox::Outbox(Worker& worker, Connector& connector, Completions& completions)
    : sender_(worker, connector, *this), completions_(completions) {
  write_pool_.fill(kUsualRequests);
}

Post Outbox::send(const SendRequest& request, std::span<Peer* const> peers) {
  if (peers.empty()) return Post::done;
  return request.bytes <= kShortBytes ? send_short(request, peers) : send_long(request, peers);
}

// All or none: a message that only some of its readers got could not be posted again.
Post Outbox::send_short(const SendRequest& request, std::span<Peer* const> peers) {
  if (!std::ranges::all_of(peers, [&](const Peer* peer) { return sender_.has_room(*peer); })) return Post::later;
  Send& send = take(request);
  const Load load{static_cast<const std::byte*>(request.data), request.bytes, &send};
  for (size_t i = 0; i < peers.size(); ++i) {
    const Tag tag{request.channel, request.match_base + request.to[i].match};
    const Sent sent = sender_.message(*peers[i], tag, load);
    send.copies += sent == Sent::later ? 1 : 0;
    send.is_lost |= sent == Sent::failed;
  }
  if (send.copies > 0 || send.is_lost) return Post::posted;
  retire(send);
  return Post::done;
}

Post Outbox::send_long(const SendRequest& request, std::span<Peer* const> peers) {
  Send& send = take(request);
  for (size_t i = 0; i < peers.size(); ++i)
    send.readers.push_back({.peer = peers[i], .match = request.match_base + request.to[i].match});
  for (const Send::Reader& reader : send.readers)
    sender_.control(*reader.peer, Kind::offer, {send.channel, reader.match}, Offer{send.bytes, send.id});
  return Post::posted;
}

Send& Outbox::take(const SendRequest& request) {
  if (free_sends_.empty()) {
    Send& fresh = sends_.emplace_back();
    fresh.id.index = static_cast<uint32_t>(sends_.size() - 1);
    fresh.readers.reserve(kUsualReaders);
    free_sends_.push_back(fresh.id.index);
  }
  Send& send = sends_[free_sends_.back()];
  free_sends_.pop_back();
  ++send.id.generation;
  send.live = true;
  send.channel = request.channel;
  send.ticket = request.ticket;
  send.data = static_cast<const std::byte*>(request.data);
  send.bytes = request.bytes;
  send.code = Code::ok;
  send.found_bytes = 0;
  send.copies = send.writes = 0;
  send.is_lost = false;
  live_.push_back(send);
  return send;
}

Send* Outbox::find(const SendId& id) {
  if (id.index >= sends_.size()) return nullptr;
  Send& send = sends_[id.index];
  return send.live && send.id == id ? &send : nullptr;
}

Send::Reader* Outbox::reader_of(Send& send, const Peer& peer) {
  const auto found = std::ranges::find(send.readers, &peer, &Send::Reader::peer);
  return found == send.readers.end() ? nullptr : &*found;
}

void Outbox::on_message_sent(void* what, bool ok) {
  Send& send = *static_cast<Send*>(what);
  --send.copies;
  send.is_lost |= !ok;
  if (send.copies > 0) return;
  if (!send.live) return free_if_over(send);
  if (!send.is_lost) complete(send);
}

bool Outbox::on_grant(Peer& peer, const Tag& tag, const GrantBody& grant) {
  Send* const send = find(grant.send);
  Send::Reader* const reader = send != nullptr ? reader_of(*send, peer) : nullptr;
  if (reader == nullptr || reader->answered) {
    sender_.control(peer, Kind::withdrawn, tag, WithdrawnBody{grant.id});
    return true;
  }
  if (grant.bytes == 0 || grant.offset > send->bytes || grant.bytes > send->bytes - grant.offset) return false;
  Write& write = write_pool_.take();
  write.send = send;
  write.peer = &peer;
  write.grant = grant;
  write.match = tag.match;
  write.posted = 0;
  write.outstanding = 0;
  write.given_up = false;
  ++send->writes;
  ++reader->writes;
  writes_.push_back(write);
  advance(write);
  return true;
}

void Outbox::advance(Write& write) {
  while (!write.given_up && write.posted < write.grant.bytes && write.outstanding < kPiecesUnderWay) post_piece(write);
  if (write.outstanding == 0 && (write.given_up || write.posted == write.grant.bytes)) end(write);
}

void Outbox::post_piece(Write& write) {
  const uint64_t offset = write.posted;
  const bool is_whole = write.grant.whole_pieces != 0;
  const uint64_t bytes = std::min(is_whole ? kWholePieceBytes : kPieceBytes, write.grant.bytes - offset);
  write.posted += bytes;
  ++write.outstanding;
  const Load load{write.send->data + write.grant.offset + offset, bytes, &write};
  const Sent sent =
      sender_.data(*write.peer, {write.send->channel, write.match}, DataBody{write.grant.id, offset}, load, is_whole);
  if (sent == Sent::later) return;
  --write.outstanding;
  if (sent == Sent::failed) write.given_up = true;
}

void Outbox::on_data_sent(void* what, bool ok) {
  Write& write = *static_cast<Write*>(what);
  --write.outstanding;
  if (!ok) write.given_up = true;
  advance(write);
}

void Outbox::end(Write& write) {
  Send& send = *write.send;
  Peer& peer = *write.peer;
  const bool is_whole = !write.given_up;
  const GrantBody grant = write.grant;
  if (!is_whole && peer.is_connected())
    sender_.control(peer, Kind::withdrawn, {send.channel, write.match}, WithdrawnBody{grant.id});
  writes_.erase(write);
  write_pool_.give(write);
  --send.writes;
  if (Send::Reader* const reader = reader_of(send, peer)) {
    --reader->writes;
    if (is_whole) reader->sent += grant.bytes;
    return settle(send, *reader);
  }
  free_if_over(send);
}

void Outbox::settle(Send& send, Send::Reader& reader) {
  if (reader.writes > 0 || (!reader.answered && reader.sent < send.bytes)) return;
  reader = send.readers.back();
  send.readers.pop_back();
  if (send.readers.empty()) complete(send);
}

bool Outbox::on_answer(Peer& peer, const AnswerBody& answer) {
  Send* const send = find(answer.send);
  if (send == nullptr) return answer.send.index < sends_.size();  // it is over
  Send::Reader* const reader = reader_of(*send, peer);
  if (reader == nullptr || reader->answered) return true;
  if (static_cast<Code>(answer.code) != Code::ok) {
    send->code = Code::mismatch;
    send->found_bytes = answer.wanted_bytes;
  }
  reader->answered = true;
  if (reader->writes == 0) {
    settle(*send, *reader);
  } else {
    give_up_writes([&](const Write& write) { return write.send == send && write.peer == &peer; });
  }
  return true;
}

// A write that ends may take its send with it, but no other write.
template <class Which>
void Outbox::give_up_writes(Which which) {
  for (Write* write = writes_.front(); write != nullptr;) {
    Write* const next = write->next;
    if (which(*write)) {
      write->given_up = true;
      advance(*write);
    }
    write = next;
  }
}

void Outbox::complete(Send& send) {
  completions_.push(send.channel, {send.ticket, send.code, send.found_bytes});
  retire(send);
}

// Out of sight; its place is used again when UCX needs nothing of it any more.
void Outbox::retire(Send& send) {
  send.live = false;
  live_.erase(send);
  send.readers.clear();
  free_if_over(send);
}

void Outbox::free_if_over(Send& send) {
  if (!send.live && send.copies == 0 && send.writes == 0) free_sends_.push_back(send.id.index);
}

void Outbox::cancel(uint64_t channel) {
  for (Send* send = live_.front(); send != nullptr;) {
    Send* const next = send->next;
    if (send->channel == channel) retire(*send);
    send = next;
  }
  give_up_writes([&](const Write& write) { return write.send->channel == channel; });
}

bool Outbox::is_reading(const Peer& peer, uint64_t channel) const {
  for (const Write* write = writes_.front(); write != nullptr; write = write->next)
    if (write->peer == &peer && write->send->channel == channel && write->outstanding > 0) return true;
  return false;
}

void Outbox::drop(const Peer& peer) {
  give_up_writes([&](const Write& write) { return write.peer == &peer; });
}

bool Outbox::waits_for(const Peer& peer) const {
  for (const Send* send = live_.front(); send != nullptr; send = send->next)
    if (std::ranges::find(send->readers, &peer, &Send::Reader::peer) != send->readers.end()) return true;
  return peer.waiting > 0;
}

}  // namespace tutti::internal::ucx
