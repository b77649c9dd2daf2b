#include "transport/verbs/cm_message.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "transport/verbs/claims.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

constexpr uint32_t kMagic = 0x4d435401;  // its last byte is the version

// As they travel: both ends are of the same build and byte order. What they arrive in may be longer.
struct FlatRequest {
  uint32_t magic = kMagic;
  int32_t rank = -1;
  uint64_t to_nonce = 0;
  uint64_t from_nonce = 0;
  uint32_t attempt = 0;
  uint32_t credits = 0;
  uint8_t path = 0;
  uint8_t path_count = 0;
  uint8_t mtu = 0;
  std::array<uint8_t, 5> unused{};
};
static_assert(sizeof(FlatRequest) == 40);
// InfiniBand gives a request 92 bytes, of which rdma_cm takes 36.
static_assert(sizeof(FlatRequest) <= 56);

struct FlatAnswer {
  uint32_t magic = kMagic;
  uint32_t credits = 0;
};

// InfiniBand gives a rejection 148 bytes.
struct FlatRejection {
  uint32_t magic = kMagic;
  uint8_t kind = 0;
  std::array<char, 143> text{};  // ended by a zero
};
static_assert(sizeof(FlatRejection) == 148);

template <class T>
std::string flat(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
std::optional<T> take(std::string_view bytes) {
  T value;
  if (bytes.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value.magic == kMagic ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string CmRequest::encode() const {
  return flat(FlatRequest{.rank = rank,
                          .to_nonce = to_nonce,
                          .from_nonce = from_nonce,
                          .attempt = attempt,
                          .credits = credits,
                          .path = static_cast<uint8_t>(path),
                          .path_count = static_cast<uint8_t>(path_count),
                          .mtu = mtu});
}

std::optional<CmRequest> CmRequest::decode(std::string_view bytes) {
  const auto found = take<FlatRequest>(bytes);
  if (!found || found->rank < 0 || !is_credible(found->credits) || found->path_count > kMaxPorts ||
      found->path >= found->path_count || found->mtu < kLeastMtu || found->mtu > kMostMtu)
    return std::nullopt;
  return CmRequest{.rank = found->rank,
                   .to_nonce = found->to_nonce,
                   .from_nonce = found->from_nonce,
                   .attempt = found->attempt,
                   .credits = found->credits,
                   .path = found->path,
                   .path_count = found->path_count,
                   .mtu = found->mtu};
}

std::string CmAnswer::encode() const { return flat(FlatAnswer{.credits = credits}); }

std::optional<CmAnswer> CmAnswer::decode(std::string_view bytes) {
  const auto found = take<FlatAnswer>(bytes);
  if (!found || !is_credible(found->credits)) return std::nullopt;
  return CmAnswer{.credits = found->credits};
}

std::string CmRejection::encode() const {
  FlatRejection result;
  result.kind = static_cast<uint8_t>(kind);
  text.copy(result.text.data(), result.text.size() - 1);
  return flat(result);
}

std::optional<CmRejection> CmRejection::decode(std::string_view bytes) {
  const auto found = take<FlatRejection>(bytes);
  if (!found || found->kind < static_cast<uint8_t>(Kind::foreign) || found->kind > static_cast<uint8_t>(Kind::refused))
    return std::nullopt;
  const auto end = std::ranges::find(found->text, '\0');
  return CmRejection{.kind = static_cast<Kind>(found->kind), .text = printable({found->text.begin(), end})};
}

}  // namespace tutti::internal::verbs
