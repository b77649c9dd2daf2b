#include "transport/shm/peer.h"

#include <algorithm>

namespace tutti::internal::shm {
namespace {

// As many released slots are told in a cell of their own; fewer wait for a cell that goes anyway, or for an idle poll.
constexpr size_t kReleaseBatch = 8;

}  // namespace

inline void Peer::publish(CellKind kind, uint8_t length, uint64_t channel, uint64_t match, const void* body,
                          size_t bytes, uint32_t lines) {
  Cell& cell = out_.cell();
  copy_small(cell.payload.data(), body, bytes);
  cell.kind = kind;
  cell.length = length;
  cell.channel = channel;
  cell.match = match;
  cell.released = 0;
  if (!releases_.empty()) {
    cell.released = static_cast<uint16_t>(releases_.back() + 1);
    releases_.pop_back();
  }
  out_.publish(lines);
  doorbell_.wake_if_asleep();
}

void Peer::write_inlined(uint64_t channel, uint64_t match, const void* data, size_t bytes) {
  if (bytes <= kCellBytes)
    return publish(CellKind::inlined, static_cast<uint8_t>(bytes), channel, match, data, bytes, 0);
  const auto* const from = static_cast<const std::byte*>(data);
  const uint32_t lines = lines_of(bytes);
  for (uint32_t i = 0; i < lines; ++i) {
    const size_t done = kCellBytes + i * kLineBytes;
    std::memcpy(out_.line(i), from + done, std::min(kLineBytes, bytes - done));
  }
  publish(CellKind::inlined, static_cast<uint8_t>(bytes), channel, match, data, kCellBytes, lines);
}

void Peer::write(CellKind kind, uint8_t length, uint64_t channel, uint64_t match, const void* body, size_t bytes) {
  if (has_room()) return publish(kind, length, channel, match, body, bytes, 0);
  Cell& cell = backlog_.emplace_back();
  cell.kind = kind;
  cell.length = length;
  cell.channel = channel;
  cell.match = match;
  copy_small(cell.payload.data(), body, bytes);
}

void Peer::release_slot(uint64_t slot_number) {
  releases_.push_back(static_cast<uint16_t>(slot_number));
  if (releases_.size() >= kReleaseBatch && has_room()) send_releases();
}

void Peer::send_releases() {
  const size_t count = std::min(releases_.size(), kReleasesPerCell);
  std::array<uint16_t, kReleasesPerCell> slots{};
  std::copy(releases_.end() - static_cast<ptrdiff_t>(count), releases_.end(), slots.begin());
  releases_.resize(releases_.size() - count);
  publish(CellKind::release, static_cast<uint8_t>(count), 0, 0, slots.data(), sizeof slots, 0);
}

void Peer::flush() {
  size_t sent = 0;
  for (; sent < backlog_.size() && out_.has_room(); ++sent) {
    const Cell& cell = backlog_[sent];
    publish(cell.kind, cell.length, cell.channel, cell.match, cell.payload.data(), kCellBytes, 0);
  }
  if (sent > 0) backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<ptrdiff_t>(sent));
  while (!releases_.empty() && has_room()) send_releases();
}

}  // namespace tutti::internal::shm
