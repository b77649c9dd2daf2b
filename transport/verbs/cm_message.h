// What travels in the private data of rdma_cm's messages: with a request, with the answer that accepts it, and with a
// rejection. Parsed from outside: anybody who reaches the listener can send a request, so every field is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::internal::verbs {

// For one queue pair; those of one attempt have the same nonces, number and count.
struct CmRequest {
  int rank = -1;          // who asks
  uint64_t to_nonce = 0;  // of the transport that is asked, which only ranks of its world know
  uint64_t from_nonce = 0;
  uint32_t attempt = 0;  // its number
  uint32_t credits = 0;  // receive buffers for the other
  int path = 0;          // which of them
  int path_count = 0;
  uint8_t mtu = 0;  // as enum ibv_mtu, for both ends

  std::string encode() const;
  // Nothing: it makes no sense, or is of another version.
  static std::optional<CmRequest> decode(std::string_view bytes);
};

struct CmAnswer {
  uint32_t credits = 0;

  std::string encode() const;
  static std::optional<CmAnswer> decode(std::string_view bytes);
};

struct CmRejection {
  enum class Kind : uint8_t {
    foreign = 1,  // not a request for this transport
    crossed,      // the other asks, too, and its attempt goes on
    refused,      // it cannot be done
  };
  Kind kind{};
  std::string text;  // why, cut to what a rejection holds

  std::string encode() const;
  static std::optional<CmRejection> decode(std::string_view bytes);
};

}  // namespace tutti::internal::verbs
