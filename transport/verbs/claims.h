// What a peer may say of itself, in letters and in rdma_cm's messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace tutti::internal::verbs {

// As enum ibv_mtu: the smallest to the largest that a port can have; the device refuses what it does not know.
inline constexpr uint8_t kLeastMtu = 1;
inline constexpr uint8_t kMostMtu = 5;

inline constexpr uint32_t kMostCreditsSaid = 1 << 16;
// Without a credit nothing could ever be sent.
constexpr bool is_credible(uint32_t credits) { return credits > 0 && credits <= kMostCreditsSaid; }

// A peer's words, as they may stand in a message of ours.
inline std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace tutti::internal::verbs
