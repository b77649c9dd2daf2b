#include "src/core/store/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tutti::internal {
namespace {

// Not text, and ended by a line break, so that services that wait for a line answer at once.
constexpr std::string_view kMagic("\x89tutti\r\n", 8);

}  // namespace

void fill_random(void* bytes, size_t count) {
  auto* next = static_cast<unsigned char*>(bytes);
  while (count > 0) {
    const ssize_t got = getrandom(next, count, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      std::abort();  // ENOSYS or a forbidden call: no connection can be made safe without a random source
    }
    next += got;
    count -= static_cast<size_t>(got);
  }
}

std::string fresh_secret() {
  std::array<unsigned char, 32> bytes;
  fill_random(bytes.data(), bytes.size());
  std::string text;
  for (unsigned char byte : bytes) {
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

Nonce fresh_nonce() {
  Nonce nonce;
  fill_random(nonce.data(), nonce.size());
  return nonce;
}

std::string greeting(const Nonce& nonce) {
  std::string bytes(kMagic);
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(kProtocolVersion >> shift & 0xff));
  bytes.append(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  return bytes;
}

Greeting parse_greeting(std::string_view bytes) {
  Greeting result;
  const size_t common = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, common) != kMagic.substr(0, common)) {
    result.kind = Greeting::Kind::foreign;
    return result;
  }
  if (bytes.size() < kMagic.size() + 4) return result;
  for (size_t i = 0; i < 4; ++i)
    result.version |= uint32_t{static_cast<unsigned char>(bytes[kMagic.size() + i])} << 8 * i;
  if (bytes.size() < kGreetingBytes) return result;
  std::memcpy(result.nonce.data(), bytes.data() + kMagic.size() + 4, kNonceBytes);
  result.kind = Greeting::Kind::complete;
  return result;
}

Proof prove(const Credentials& credentials, Role role, const Nonce& of_rank, const Nonce& of_store) {
  std::string text = "tutti store proof";
  text.push_back(static_cast<char>(role));
  // The label may be of any length: its own comes before it, so that no two inputs read the same.
  for (int shift = 0; shift < 32; shift += 8)
    text.push_back(static_cast<char>(credentials.label.size() >> shift & 0xff));
  text += credentials.label;
  text.append(reinterpret_cast<const char*>(of_rank.data()), of_rank.size());
  text.append(reinterpret_cast<const char*>(of_store.data()), of_store.size());
  Proof proof{};
  unsigned length = 0;
  const auto* made = HMAC(EVP_sha256(), credentials.secret.data(), static_cast<int>(credentials.secret.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(), proof.data(), &length);
  if (!made || length != proof.size()) std::abort();  // a libcrypto without SHA-256 can prove nothing
  return proof;
}

bool is_equal(const Proof& a, const Proof& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace tutti::internal
