#include "transport/verbs/outbox.h"

#include <algorithm>
#include <cstring>

namespace tutti::internal::verbs {
namespace {

constexpr size_t kUsualReaders = 8;
constexpr uint64_t kStripeAlignment = 64;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Outbox::Outbox(Registrar& registrar, Staging& staging, Completions& completions,
               const std::unordered_set<uint64_t>& cancelled, uint64_t max_piece_bytes)
    : registrar_(registrar),
      staging_(staging),
      completions_(completions),
      cancelled_(cancelled),
      max_piece_bytes_(max_piece_bytes) {
  write_pool_.fill(kUsualRequests);
  grant_pool_.fill(kUsualRequests);
}

Post Outbox::send(const SendRequest& request, std::span<Peer* const> peers) {
  if (peers.empty()) return Post::done;
  return request.bytes <= kShortBytes ? send_short(request, peers) : send_long(request, peers);
}

// All or none: a message that only some of its readers got could not be posted again.
Post Outbox::send_short(const SendRequest& request, std::span<Peer* const> peers) {
  for (Peer* peer : peers)
    if (peer->has_backlog() || !peer->main_pair().can_send(request.bytes, peers.size())) return Post::later;
  const std::span data(static_cast<const std::byte*>(request.data), request.bytes);
  for (size_t i = 0; i < peers.size(); ++i)
    peers[i]->send(
        {.kind = Kind::message, .channel = request.channel, .match = request.match_base + request.to[i].match}, data);
  return Post::done;
}

Post Outbox::send_long(const SendRequest& request, std::span<Peer* const> peers) {
  Send& send = take();
  send.channel = request.channel;
  send.ticket = request.ticket;
  send.data = static_cast<const std::byte*>(request.data);
  send.bytes = request.bytes;
  send.source = registrar_.acquire(request.data, request.bytes, false, nullptr);
  for (size_t i = 0; i < peers.size(); ++i)
    send.readers.push_back({.peer = peers[i], .match = request.match_base + request.to[i].match});
  for (size_t i = send.readers.size(); i-- > 0;) {  // from the end: a reader with another length leaves at once
    Peer& peer = *send.readers[i].peer;
    const uint64_t match = send.readers[i].match;
    EarlyGrant* grant = peer.inbox.find_grant(send.channel, match);
    if (grant == nullptr) offer(send, send.readers[i]);
    for (; grant != nullptr; grant = peer.inbox.find_grant(send.channel, match)) {
      peer.inbox.grants.erase(*grant);
      take_grant(send, peer, grant->body);
      grant_pool_.give(*grant);
    }
  }
  return Post::posted;
}

void Outbox::offer(Send& send, Send::Reader& reader) {
  reader.offered = true;
  reader.peer->control(Kind::offer, send.channel, reader.match, Offer{send.bytes, send.id});
}

Send& Outbox::take() {
  if (free_sends_.empty()) {
    Send& send = sends_.emplace_back();
    send.id.index = static_cast<uint32_t>(sends_.size() - 1);
    send.readers.reserve(kUsualReaders);
    free_sends_.push_back(send.id.index);
  }
  Send& send = sends_[free_sends_.back()];
  free_sends_.pop_back();
  ++send.id.generation;
  send.live = true;
  send.code = Code::ok;
  send.found_bytes = 0;
  send.writes = 0;
  live_.push_back(send);
  return send;
}

Send* Outbox::find(const SendId& id) {
  if (id.index >= sends_.size()) return nullptr;
  Send& send = sends_[id.index];
  return send.live && send.id == id ? &send : nullptr;
}

Send* Outbox::find(const Peer& peer, const Header& header) {
  for (Send* send = live_.front(); send != nullptr; send = send->next) {
    if (send->channel != header.channel) continue;
    const Send::Reader* const reader = reader_of(*send, peer);
    if (reader != nullptr && reader->match == header.match) return send;
  }
  return nullptr;
}

Send::Reader* Outbox::reader_of(Send& send, const Peer& peer) {
  const auto found = std::ranges::find(send.readers, &peer, &Send::Reader::peer);
  return found == send.readers.end() ? nullptr : &*found;
}

bool Outbox::on_grant(Peer& peer, const Header& header, const GrantBody& grant) {
  if (grant.offset > grant.message_bytes || grant.bytes > grant.message_bytes - grant.offset || grant.bytes == 0)
    return false;
  if (cancelled_.contains(header.channel)) {
    peer.control(Kind::withdrawn, header.channel, header.match, GrantName{grant.immediate});
    return true;
  }
  if (Send* const send = find(peer, header)) {
    take_grant(*send, peer, grant);
    return true;
  }
  EarlyGrant& early = grant_pool_.take();
  early.channel = header.channel;
  early.match = header.match;
  early.body = grant;
  peer.inbox.grants.push_back(early);
  return true;
}

void Outbox::take_grant(Send& send, Peer& peer, const GrantBody& grant) {
  Send::Reader* const reader = reader_of(send, peer);
  if (reader != nullptr && grant.message_bytes == send.bytes) return start(send, *reader, grant);
  const uint64_t match = reader != nullptr ? reader->match : 0;
  if (reader != nullptr) {
    // The receiver learns our length by an offer.
    if (!reader->offered) offer(send, *reader);
    send.code = Code::mismatch;
    send.found_bytes = grant.message_bytes;
  }
  peer.control(Kind::withdrawn, send.channel, match, GrantName{grant.immediate});
  if (reader != nullptr) reader_done(send, *reader);
}

void Outbox::start(Send& send, Send::Reader& reader, const GrantBody& grant) {
  Write& write = write_pool_.take();
  write.send = &send;
  write.peer = reader.peer;
  write.grant = grant;
  write.outstanding = 0;
  write.given_up = false;
  write.stripe_count = static_cast<uint32_t>(
      std::clamp<uint64_t>(grant.bytes / kStripeBytes, 1, send.source != nullptr ? reader.peer->pairs.size() : 1));
  const uint64_t share = grant.bytes / write.stripe_count / kStripeAlignment * kStripeAlignment;
  for (uint32_t i = 0; i < write.stripe_count; ++i)
    write.stripes[i] = {.next = i * share, .end = i + 1 == write.stripe_count ? grant.bytes : (i + 1) * share};
  ++send.writes;
  ++reader.writes;
  writes_.push_back(write);
  post_pieces(write);
}

bool Outbox::post_pieces(Write& write) {
  bool moved = false;
  for (uint32_t stripe = 0; stripe < write.stripe_count; ++stripe)
    while (!write.stripes[stripe].finished && post_piece(write, stripe)) moved = true;
  return moved;
}

bool Outbox::post_piece(Write& write, uint32_t stripe) {
  QueuePair& pair = *write.peer->pairs[stripe];
  Write::Stripe& place = write.stripes[stripe];
  const Send& send = *write.send;
  const bool copies = send.source == nullptr;
  const uint64_t bytes =
      std::min(place.end - place.next, copies ? std::min(kChunkBytes, max_piece_bytes_) : max_piece_bytes_);
  const bool is_last = place.next + bytes == place.end;
  if (!pair.has_room() || (is_last && !pair.has_credit())) return false;
  const std::byte* data = send.data + write.grant.offset + place.next;
  const Registration* source = send.source;
  int chunk = -1;
  if (copies) {
    if (!staging_.prepare().ok() || (chunk = staging_.take()) < 0) return false;
    std::memcpy(staging_.data(chunk), data, bytes);
    data = staging_.data(chunk);
    source = &staging_.registration();
  }
  Immediate immediate = Immediate::unpack(write.grant.immediate);
  immediate.stripes = write.stripe_count;
  const auto port = static_cast<size_t>(pair.port_index());
  const bool posted = pair.write({.data = data,
                                  .key = source->keys[port].local,
                                  .bytes = static_cast<uint32_t>(bytes),
                                  .remote_address = write.grant.address + place.next,
                                  .remote_key = write.grant.keys[stripe],
                                  .is_last = is_last,
                                  .immediate = immediate.pack(),
                                  .sent = {.write = &write, .chunk = chunk}});
  if (!posted) {
    if (chunk >= 0) staging_.give(chunk);
    write.peer->raise_alarm();
    return false;
  }
  (copies ? copied_bytes_ : direct_bytes_) += bytes;
  place.next += bytes;
  place.finished = is_last;
  ++write.outstanding;
  return true;
}

void Outbox::on_sent(const Sent& sent) {
  if (sent.chunk >= 0) staging_.give(sent.chunk);
  if (sent.write == nullptr) return;
  --sent.write->outstanding;
  end_if_over(*sent.write);
}

void Outbox::end_if_over(Write& write) {
  const std::span stripes(write.stripes.data(), write.stripe_count);
  const bool is_posted = std::ranges::all_of(stripes, &Write::Stripe::finished);
  if (write.outstanding > 0 || (!is_posted && !write.given_up)) return;
  Send& send = *write.send;
  Peer& peer = *write.peer;
  const bool is_written = is_posted && state_of(peer) != PeerState::failed;
  const uint32_t immediate = write.grant.immediate;
  const uint64_t bytes = write.grant.bytes;
  writes_.erase(write);
  write_pool_.give(write);
  --send.writes;
  Send::Reader* const reader = reader_of(send, peer);
  if (!is_posted) peer.control(Kind::withdrawn, send.channel, 0, GrantName{immediate});
  if (reader != nullptr) {
    --reader->writes;
    if (is_written) reader->written += bytes;
    if (reader->written == send.bytes || (reader->enough && reader->writes == 0)) return reader_done(send, *reader);
  }
  if (!send.live && send.writes == 0) free(send);
}

void Outbox::reader_done(Send& send, Send::Reader& reader) {
  reader = send.readers.back();
  send.readers.pop_back();
  if (!send.readers.empty()) return;
  completions_.push(send.channel, {send.ticket, send.code, send.found_bytes});
  retire(send);
}

// Out of sight; its place is used again when the device reads nothing of it any more.
void Outbox::retire(Send& send) {
  send.live = false;
  live_.erase(send);
  send.readers.clear();
  if (send.writes == 0) free(send);
}

void Outbox::free(Send& send) {
  if (send.source != nullptr) registrar_.release(send.source);
  send.source = nullptr;
  free_sends_.push_back(send.id.index);
}

bool Outbox::on_answer(Peer& peer, const AnswerBody& answer) {
  Send* const send = find(answer.id);
  if (send == nullptr) return answer.id.index < sends_.size();  // it is over
  Send::Reader* const reader = reader_of(*send, peer);
  if (reader == nullptr) return true;
  if (static_cast<Code>(answer.code) != Code::ok) {
    send->code = Code::mismatch;
    send->found_bytes = answer.found_bytes;
  }
  reader_done(*send, *reader);
  return true;
}

void Outbox::on_enough(const Peer& peer, const Header& header) {
  Send* const send = find(peer, header);
  if (send == nullptr) return;
  Send::Reader& reader = *reader_of(*send, peer);
  reader.enough = true;
  if (reader.writes == 0) reader_done(*send, reader);
}

// A grant that is being fulfilled ends by itself.
void Outbox::on_revoke(Peer& peer, const Header& header, const GrantName& name) {
  for (EarlyGrant* grant = peer.inbox.grants.front(); grant != nullptr; grant = grant->next) {
    if (grant->body.immediate != name.immediate) continue;
    peer.inbox.grants.erase(*grant);
    grant_pool_.give(*grant);
    peer.control(Kind::withdrawn, header.channel, header.match, name);
    return;
  }
}

bool Outbox::advance() {
  bool moved = false;
  for (Write* write = writes_.front(); write != nullptr;) {
    Write* const next = write->next;
    if (!write->given_up) moved |= post_pieces(*write);
    write = next;
  }
  return moved;
}

void Outbox::cancel(uint64_t channel, std::span<Peer* const> peers) {
  give_up_writes([&](const Write& write) { return write.send->channel == channel; });
  for (Send* send = live_.front(); send != nullptr;) {
    Send* const next = send->next;
    if (send->channel == channel) retire(*send);
    send = next;
  }
  for (Peer* peer : peers) drop_grants(*peer, channel, true);
}

template <class Which>
void Outbox::give_up_writes(Which which) {
  for (Write* write = writes_.front(); write != nullptr;) {
    Write* const next = write->next;
    if (which(*write)) {
      write->given_up = true;
      end_if_over(*write);
    }
    write = next;
  }
}

void Outbox::drop_grants(Peer& peer, uint64_t channel, bool tell) {
  for (EarlyGrant* grant = peer.inbox.grants.front(); grant != nullptr;) {
    EarlyGrant* const next = grant->next;
    if (grant->channel == channel) {
      peer.inbox.grants.erase(*grant);
      if (tell) peer.control(Kind::withdrawn, channel, grant->match, GrantName{grant->body.immediate});
      grant_pool_.give(*grant);
    }
    grant = next;
  }
}

void Outbox::forget(uint64_t channel, std::span<Peer* const> peers) {
  for (Peer* peer : peers) drop_grants(*peer, channel, false);
}

bool Outbox::is_reading(const Peer& peer, uint64_t channel) const {
  for (const Write* write = writes_.front(); write != nullptr; write = write->next)
    if (write->peer == &peer && write->send->channel == channel && write->outstanding > 0) return true;
  return false;
}

void Outbox::drop(Peer& peer) {
  give_up_writes([&](const Write& write) { return write.peer == &peer; });
}

bool Outbox::waits_for(const Peer& peer) const {
  for (const Send* send = live_.front(); send != nullptr; send = send->next)
    if (std::ranges::find(send->readers, &peer, &Send::Reader::peer) != send->readers.end()) return true;
  return false;
}

}  // namespace tutti::internal::verbs
