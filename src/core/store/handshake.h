// How the two ends of a connection prove that they know the job's secret, before either parses anything else.
//
//   rank                                     store
//   greeting: magic, version, nonce   ---->
//                                     <----  greeting: magic, version, nonce
//   proof of the rank                 ---->
//                                     <----  proof of the store, or 32 zero bytes: not the same secret
//
// A proof is HMAC-SHA256, keyed by the secret, over the prover's role, the job's label and both nonces; it is worth
// nothing on any other connection. Without a secret the key is empty: the exchange then only shows that both ends mean
// the same job, and the store listens on loopback alone. Pure but for the random source; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::internal {

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kGreetingBytes = 8 + 4 + kNonceBytes;
inline constexpr uint32_t kProtocolVersion = 1;

using Nonce = std::array<unsigned char, kNonceBytes>;
using Proof = std::array<unsigned char, kProofBytes>;

// What a job is known by: the secret, and a label that keeps jobs without one apart.
struct Credentials {
  std::string secret;
  std::string label;
};

enum class Role : uint8_t { rank = 1, store = 2 };

// Fills with bytes that nobody can guess.
void fill_random(void* bytes, size_t count);
// 64 hexadecimal digits that nobody can guess.
std::string fresh_secret();
Nonce fresh_nonce();

std::string greeting(const Nonce& nonce);

struct Greeting {
  enum class Kind {
    partial,  // so far it could be one
    foreign,  // no tutti speaks so
    complete,
  };
  Kind kind = Kind::partial;
  uint32_t version = 0;
  Nonce nonce{};
};
// Judges what has arrived so far; it need not be whole to be seen to be foreign.
Greeting parse_greeting(std::string_view bytes);

Proof prove(const Credentials& credentials, Role role, const Nonce& of_rank, const Nonce& of_store);
// Takes the same time wherever the bytes differ.
bool is_equal(const Proof& a, const Proof& b);

}  // namespace tutti::internal
