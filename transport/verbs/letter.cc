#include "transport/verbs/letter.h"

#include <algorithm>
#include <cstring>

#include "transport/verbs/claims.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

constexpr uint32_t kMagic = 0x76747401;
constexpr size_t kMaxTextBytes = 1024;

// As they travel: both ends are of the same build and byte order.
struct Head {
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint64_t to_nonce = 0;
  uint64_t from_nonce = 0;
  uint32_t credits = 0;
  uint32_t line_count = 0;
};
struct FlatLine {
  GidBytes peer_gid_raw{};
  int32_t own_port = 0;
  int32_t peer_port = 0;
  int32_t own_gid = -1;
  int32_t peer_gid = -1;
  uint32_t pair_number = 0;
  uint16_t peer_lid = 0;
  uint8_t is_global = 0;
  uint8_t mtu = 0;
};

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

}  // namespace

std::string Letter::encode() const {
  std::string bytes;
  append(bytes, Head{.kind = static_cast<uint32_t>(kind),
                     .to_nonce = to_nonce,
                     .from_nonce = from_nonce,
                     .credits = credits,
                     .line_count = static_cast<uint32_t>(lines.size())});
  for (const Line& line : lines)
    append(bytes, FlatLine{.peer_gid_raw = line.path.peer_gid_raw,
                           .own_port = line.path.own_port,
                           .peer_port = line.path.peer_port,
                           .own_gid = line.path.own_gid,
                           .peer_gid = line.path.peer_gid,
                           .pair_number = line.pair_number,
                           .peer_lid = line.path.peer_lid,
                           .is_global = line.path.is_global,
                           .mtu = line.path.mtu});
  return bytes.append(text, 0, kMaxTextBytes);
}

Result<Letter> Letter::decode(std::string_view bytes) {
  const Status damaged(Code::invalid_argument, "a letter that makes no sense");
  if (bytes.size() < sizeof(Head)) return damaged;
  const auto head = take<Head>(bytes);
  const bool is_known =
      head.kind >= static_cast<uint32_t>(Kind::hello) && head.kind <= static_cast<uint32_t>(Kind::refuse);
  if (head.magic != kMagic || !is_known || head.line_count > kMaxPorts ||
      bytes.size() < head.line_count * sizeof(FlatLine))
    return damaged;
  const auto kind = static_cast<Kind>(head.kind);
  if ((kind == Kind::hello || kind == Kind::welcome) && !is_credible(head.credits)) return damaged;
  Letter letter;
  letter.kind = kind;
  letter.to_nonce = head.to_nonce;
  letter.from_nonce = head.from_nonce;
  letter.credits = head.credits;
  for (uint32_t i = 0; i < head.line_count; ++i) {
    const auto flat = take<FlatLine>(bytes);
    Line line;
    line.path.own_port = flat.own_port;
    line.path.peer_port = flat.peer_port;
    line.path.own_gid = flat.own_gid;
    line.path.peer_gid = flat.peer_gid;
    line.path.peer_gid_raw = flat.peer_gid_raw;
    line.path.is_global = flat.is_global != 0;
    line.path.peer_lid = flat.peer_lid;
    line.path.mtu = flat.mtu;
    line.pair_number = flat.pair_number;
    letter.lines.push_back(line);
  }
  if (bytes.size() > kMaxTextBytes) return damaged;
  letter.text = printable(std::string(bytes));
  return letter;
}

}  // namespace tutti::internal::verbs
