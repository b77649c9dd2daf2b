#include "src/run/link_message.h"

#include <cstring>

namespace tutti::internal {
namespace {

// Length of what follows, type, rank, number, text. Both ends run the same version, but perhaps on other processors.
constexpr size_t kLengthBytes = 4;
constexpr size_t kHeadBytes = 1 + 4 + 4;

void put_number(std::string& bytes, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
}

uint32_t number_at(std::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

}  // namespace

std::string encode(const LinkMessage& message) {
  std::string bytes;
  put_number(bytes, static_cast<uint32_t>(kHeadBytes + message.text.size()));
  bytes.push_back(static_cast<char>(message.type));
  put_number(bytes, static_cast<uint32_t>(message.rank));
  put_number(bytes, static_cast<uint32_t>(message.number));
  return bytes + message.text;
}

void LinkBuffer::add(std::string_view bytes) {
  bytes_.erase(0, taken_);
  taken_ = 0;
  bytes_ += bytes;
}

std::optional<LinkMessage> LinkBuffer::next() {
  const std::string_view here = bytes();
  if (broken_ || here.size() < kLengthBytes) return std::nullopt;
  const size_t length = number_at(here, 0);
  broken_ = length < kHeadBytes || length > kMostBytes;
  if (broken_ || here.size() < kLengthBytes + length) return std::nullopt;
  const auto type = static_cast<unsigned char>(here[kLengthBytes]);
  broken_ = type > static_cast<unsigned char>(LinkMessage::Type::ended);
  if (broken_) return std::nullopt;
  LinkMessage message;
  message.type = static_cast<LinkMessage::Type>(type);
  message.rank = static_cast<int32_t>(number_at(here, kLengthBytes + 1));
  message.number = static_cast<int32_t>(number_at(here, kLengthBytes + 5));
  message.text = here.substr(kLengthBytes + kHeadBytes, length - kHeadBytes);
  take(kLengthBytes + length);
  return message;
}

}  // namespace tutti::internal
