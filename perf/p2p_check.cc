#include "p2p_check.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace tutti::perf {
namespace {

// Words made and compared at a time.
constexpr size_t kWords = 1024;
using Block = std::array<std::byte, kWords * sizeof(uint64_t)>;

}  // namespace

// Random words; those that only move are not combined, whatever the operator.
Content::Content(size_t bytes) : pattern_(TUTTI_UINT64, TUTTI_SUM, 1, false), bytes_(bytes) {}

void Content::fill(int rank, uint64_t number, std::byte* out) const {
  Block block;
  for (size_t at = 0; at < bytes_; at += block.size()) {
    pattern_.input(rank, number, at / sizeof(uint64_t), block);
    std::memcpy(out + at, block.data(), std::min(block.size(), bytes_ - at));
  }
}

uint64_t Content::count_wrong(int rank, uint64_t number, const std::byte* found, std::string* first) const {
  Block block;
  uint64_t wrong = 0;
  for (size_t at = 0; at < bytes_; at += block.size()) {
    const size_t length = std::min(block.size(), bytes_ - at);
    pattern_.input(rank, number, at / sizeof(uint64_t), block);
    if (std::memcmp(found + at, block.data(), length) == 0) continue;
    for (size_t i = 0; i < length; ++i) {
      if (found[at + i] == block[i]) continue;
      ++wrong;
      if (!first->empty()) continue;
      std::array<char, 160> text{};
      std::snprintf(text.data(), text.size(),
                    "message %llu of %zu bytes from rank %d, byte %zu: 0x%02x, expected 0x%02x",
                    static_cast<unsigned long long>(number), bytes_, rank, at + i,
                    std::to_integer<unsigned>(found[at + i]), std::to_integer<unsigned>(block[i]));
      *first = text.data();
    }
  }
  return wrong;
}

Checker::Checker(const Side& side, uint64_t first, int flip_rank)
    : side_(side), content_(side.bytes), first_(first), flip_rank_(flip_rank) {}

void Checker::before_send(uint64_t message) { content_.fill(side_.rank, first_ + message, side_.send_slot(message)); }

void Checker::after_recv(uint64_t message) {
  look(first_ + message, side_.recv_slot(message));
  // What stays there is no message, and must not pass for the next.
  std::memset(side_.recv_slot(message), 0x5a, side_.bytes);
}

void Checker::prepare(uint64_t slots) {
  content_.fill(side_.rank, first_, side_.send_slot(0));
  for (uint64_t slot = 0; slot < slots; ++slot) std::memset(side_.recv_slot(slot), 0x5a, side_.bytes);
}

void Checker::look_at_all(uint64_t slots) {
  for (uint64_t slot = 0; slot < slots; ++slot) look(first_, side_.recv_slot(slot));
}

void Checker::look(uint64_t number, std::byte* slot) {
  if (side_.rank == flip_rank_) {
    const uint64_t bit = (number * 0x9e3779b97f4a7c15U >> 8) % (side_.bytes * 8);
    slot[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  ++checked_;
  wrong_ += content_.count_wrong(side_.peer(), number, slot, &fault_);
}

}  // namespace tutti::perf
