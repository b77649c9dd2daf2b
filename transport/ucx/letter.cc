#include "transport/ucx/letter.h"

#include <cstring>

namespace tutti::internal::ucx {
namespace {

// As it travels, with the address behind it.
struct Head {
  Letter::Kind kind{};
  uint32_t unused = 0;
  uint64_t to_nonce = 0;
};

}  // namespace

std::string Letter::encode() const {
  const Head head{.kind = kind, .to_nonce = to_nonce};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return bytes += from.encode();
}

Result<Letter> Letter::decode(std::string_view bytes) {
  Head head;
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  if (bytes.size() < sizeof head || head.kind < Kind::hello || head.kind > Kind::refuse)
    return Status(Code::invalid_argument, "a letter that makes no sense");
  auto from = Address::decode(bytes.substr(sizeof head));
  if (!from) return from.status();
  Letter letter;
  letter.kind = head.kind;
  letter.to_nonce = head.to_nonce;
  letter.from = std::move(*from);
  return letter;
}

}  // namespace tutti::internal::ucx
