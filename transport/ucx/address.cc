#include "transport/ucx/address.h"

#include <fmt/format.h>

#include <cstring>

namespace tutti::internal::ucx {
namespace {

constexpr uint32_t kMagic = 0x31585554;  // "TUX1"

// As it travels, with the worker's bytes behind it: both ends are of the same build and byte order.
struct Head {
  uint32_t magic = kMagic;
  int32_t rank = -1;
  uint64_t nonce = 0;
  uint64_t sum = 0;
};

// FNV-1a, of 64 bits.
uint64_t sum_of(const Address& address) {
  uint64_t sum = 0xcbf29ce484222325U ^ address.nonce ^ static_cast<uint64_t>(address.rank);
  for (const char byte : address.worker) sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3U;
  return sum;
}

Status refused(std::string_view why) { return Status(Code::invalid_argument, fmt::format("a UCX address {}", why)); }

}  // namespace

std::string Address::encode() const {
  const Head head{.rank = rank, .nonce = nonce, .sum = sum_of(*this)};
  std::string text(reinterpret_cast<const char*>(&head), sizeof head);
  return text += worker;
}

Result<Address> Address::decode(std::string_view text) {
  Head head;
  if (text.size() >= sizeof head) std::memcpy(&head, text.data(), sizeof head);
  if (text.size() < sizeof head || head.magic != kMagic)
    return Status(Code::invalid_argument, fmt::format("{} bytes that are no address of UCX", text.size()));
  Address address;
  address.rank = head.rank;
  address.nonce = head.nonce;
  address.worker = text.substr(sizeof head);
  if (address.rank < 0) return refused("has no rank");
  if (address.worker.empty() || address.worker.size() > kMostWorkerBytes)
    return refused(
        fmt::format("has {} bytes of a worker, 1 to {} allowed", address.worker.size(), size_t{kMostWorkerBytes}));
  if (sum_of(address) != head.sum) return refused("is damaged");
  return address;
}

}  // namespace tutti::internal::ucx
