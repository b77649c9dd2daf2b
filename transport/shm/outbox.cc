#include "transport/shm/outbox.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "transport/shm/tuning.h"

namespace tutti::internal::shm {

Outbox::Outbox(Region& region, Completions& completions)
    : region_(region), completions_(completions), arena_(region.at<std::byte>(region.layout().arena_offset())) {
  for (size_t i = 0; i < kUsualRequests; ++i) add_send();
}

Post Outbox::send(const SendRequest& request, std::span<Peer* const> peers) {
  const bool inlined = request.bytes <= kInlineBytes;
  const uint32_t cells = inlined ? 1 + lines_of(request.bytes) : 1;
  for (Peer* peer : peers)
    if (!peer->has_room(cells)) return Post::later;
  if (inlined) {
    for (size_t i = 0; i < peers.size(); ++i)
      peers[i]->write_inlined(request.channel, request.match_base + request.to[i].match, request.data, request.bytes);
    return Post::done;
  }
  const size_t most = region_.contains(request.data, request.bytes) ? kStageWindowBytes : kStageMemoryBytes;
  if (request.bytes <= most && !peers.empty())
    if (const uint32_t slot = arena_.take(request.bytes, static_cast<uint32_t>(peers.size())); slot != kNoSlot)
      return stage(request, peers, slot);
  return offer(request, peers);
}

Post Outbox::stage(const SendRequest& request, std::span<Peer* const> peers, uint32_t slot) {
  copy_bytes(arena_.data(slot), request.data, request.bytes, request.bytes);
  const StagedBody body{request.bytes, slot};
  for (size_t i = 0; i < peers.size(); ++i) {
    peers[i]->held.set(slot);
    peers[i]->write(CellKind::staged, body, request.channel, request.match_base + request.to[i].match);
  }
  return Post::done;
}

Post Outbox::offer(const SendRequest& request, std::span<Peer* const> peers) {
  if (peers.empty()) return Post::done;
  Send* const send = take();
  if (send == nullptr) return Post::later;
  send->channel = request.channel;
  send->ticket = request.ticket;
  send->data = static_cast<const std::byte*>(request.data);
  send->bytes = request.bytes;
  const bool in_window = region_.contains(request.data, request.bytes);
  const uint64_t where =
      in_window ? static_cast<uint64_t>(send->data - region_.base()) : reinterpret_cast<uint64_t>(request.data);
  const OfferBody body{where, request.bytes, send->id};
  for (size_t i = 0; i < peers.size(); ++i) {
    send->readers.push_back({.peer = peers[i], .match = request.match_base + request.to[i].match});
    const CellKind kind = in_window ? CellKind::window : peers[i]->can_read_us() ? CellKind::memory : CellKind::stream;
    peers[i]->write(kind, body, request.channel, request.match_base + request.to[i].match);
  }
  return Post::posted;
}

void Outbox::add_send() {
  const auto index = static_cast<uint32_t>(sends_.size());
  Send& send = sends_.emplace_back();
  send.id.index = index;
  send.readers.reserve(kUsualReaders);
  free_sends_.push_back(index);
}

Outbox::Send* Outbox::take() {
  if (free_sends_.empty()) {
    if (sends_.size() == kMaxSends) return nullptr;
    add_send();
  }
  Send& send = sends_[free_sends_.back()];
  free_sends_.pop_back();
  ++send.id.generation;
  if (send.id.generation == 0) ++send.id.generation;  // 0 is what an untouched withdrawn word says
  send.live = true;
  send.code = Code::ok;
  send.found_bytes = 0;
  return &send;
}

Outbox::Send* Outbox::find(const SendId& id) {
  if (id.index >= sends_.size()) return nullptr;
  Send& send = sends_[id.index];
  return send.live && send.id.generation == id.generation ? &send : nullptr;
}

void Outbox::retire(Send& send) {
  if (send.streaming) streams_.erase(send);
  send.streaming = false;
  send.live = false;
  send.readers.clear();
  free_sends_.push_back(send.id.index);
}

void Outbox::reader_done(Send& send, size_t reader) {
  send.readers[reader] = send.readers.back();
  send.readers.pop_back();
  if (!send.readers.empty()) return;
  completions_.push(send.channel, {send.ticket, send.code, send.found_bytes});
  retire(send);
}

bool Outbox::on_ack(Peer& peer, const AckBody& ack) {
  Send* const send = find(ack.id);
  if (send == nullptr) return ack.id.index < sends_.size();  // cancelled meanwhile
  for (size_t i = 0; i < send->readers.size(); ++i) {
    if (send->readers[i].peer != &peer) continue;
    if (static_cast<Code>(ack.code) != Code::ok) {
      send->code = Code::mismatch;
      send->found_bytes = ack.found_bytes;
    }
    reader_done(*send, i);
    return true;
  }
  return false;
}

bool Outbox::on_go(Peer& peer, const GoBody& go) {
  Send* const send = find(go.id);
  if (send == nullptr) return go.id.index < sends_.size();
  for (Reader& reader : send->readers) {
    if (reader.peer != &peer || reader.streaming) continue;
    reader.streaming = true;
    reader.to = go.to;
    reader.offset = 0;
    if (!send->streaming) streams_.push_back(*send);
    send->streaming = true;
    return true;
  }
  return false;
}

bool Outbox::on_release(Peer& peer, uint32_t slot) {
  if (slot >= kSlotCount || !peer.held.test(slot)) return false;
  peer.held.reset(slot);
  arena_.release(slot);
  return true;
}

bool Outbox::advance_streams() {
  bool moved = false;
  for (Send* send = streams_.front(); send != nullptr;) {
    Send* const next = send->next;
    moved |= advance(*send);
    send = next;
  }
  return moved;
}

bool Outbox::advance(Send& send) {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  uint64_t offset = kNone;
  for (const Reader& reader : send.readers)
    if (reader.streaming && reader.peer->has_room()) offset = std::min(offset, reader.offset);
  if (offset == kNone) return false;
  const auto takes = [&](const Reader& reader) { return reader.streaming && reader.offset == offset; };
  const auto takers = std::count_if(send.readers.begin(), send.readers.end(), takes);
  const uint32_t slot = arena_.take_chunk(static_cast<uint32_t>(takers));
  if (slot == kNoSlot) return false;
  const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(kChunkBytes, send.bytes - offset));
  std::memcpy(arena_.data(slot), send.data + offset, bytes);
  for (size_t i = send.readers.size(); i-- > 0;) {  // from the end: reader_done moves the last one into a gap
    Reader& reader = send.readers[i];
    if (!takes(reader)) continue;
    reader.peer->held.set(slot);
    reader.peer->write(CellKind::chunk, ChunkBody{offset, bytes, slot, reader.to});
    reader.offset += bytes;
    if (reader.offset == send.bytes) reader_done(send, i);
  }
  return true;
}

void Outbox::cancel(uint64_t channel) {
  for (Send& send : sends_) {
    if (!send.live || send.channel != channel) continue;
    auto& word = *region_.at<uint32_t>(region_.layout().withdrawn_offset() + send.id.index * sizeof(uint32_t));
    // pairs with Peer::has_withdrawn: seq_cst, so that no later write to the offered memory comes before it.
    std::atomic_ref(word).store(send.id.generation, std::memory_order_seq_cst);
    retire(send);
  }
}

void Outbox::drop(Peer& peer) {
  for (uint32_t slot = 0; slot < kSlotCount; ++slot)
    if (peer.held.test(slot)) arena_.release(slot);
  peer.held.reset();
  for (Send& send : sends_)
    for (Reader& reader : send.readers)
      if (reader.peer == &peer) reader.streaming = false;
}

bool Outbox::waits_for(const Peer& peer) const {
  return std::any_of(sends_.begin(), sends_.end(), [&](const Send& send) {
    return std::any_of(send.readers.begin(), send.readers.end(),
                       [&](const Reader& reader) { return reader.peer == &peer; });
  });
}

}  // namespace tutti::internal::shm
