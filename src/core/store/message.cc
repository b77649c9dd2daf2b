#include "src/core/store/message.h"

#include <limits>
#include <type_traits>

namespace tutti::internal {
namespace {

// All of a message but its texts: type, rank, count, number, code, failed, and the two lengths.
constexpr size_t kFixedBytes = 1 + 4 + 4 + 8 + 4 + 4 + 4 + 4;

// Little-endian on the wire.
template <class Int>
void put(std::string& bytes, Int value) {
  auto rest = static_cast<std::make_unsigned_t<Int>>(value);
  for (size_t i = 0; i < sizeof(Int); ++i) {
    bytes.push_back(static_cast<char>(rest & 0xff));
    rest = static_cast<decltype(rest)>(static_cast<uint64_t>(rest) >> 8);
  }
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<uint32_t>(text.size()));
  bytes.append(text);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Int>
  Int get() {
    if (rest_.size() < sizeof(Int)) {
      failed_ = true;
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(Int); ++i) value |= uint64_t{static_cast<unsigned char>(rest_[i])} << 8 * i;
    rest_.remove_prefix(sizeof(Int));
    return static_cast<Int>(value);
  }

  std::string text(size_t most) {
    const auto length = get<uint32_t>();
    if (failed_ || length > most || length > rest_.size()) {
      failed_ = true;
      return {};
    }
    std::string result(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return result;
  }

  bool at_end() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

bool is_type(uint8_t type) {
  return type >= static_cast<uint8_t>(Message::Type::join) && type <= static_cast<uint8_t>(Message::Type::letter);
}
bool is_code(int32_t code) { return code >= TUTTI_OK && code <= TUTTI_INTERNAL; }

}  // namespace

Frame encode(const Message& message) {
  const std::string_view name = std::string_view(message.name).substr(0, kMaxNameBytes);
  const std::string_view body = std::string_view(message.body).substr(0, kMaxBodyBytes);
  std::string bytes;
  bytes.reserve(kLengthBytes + kFixedBytes + name.size() + body.size());
  put(bytes, static_cast<uint32_t>(kFixedBytes + name.size() + body.size()));
  put(bytes, static_cast<uint8_t>(message.type));
  put(bytes, message.rank);
  put(bytes, message.count);
  put(bytes, message.number);
  put(bytes, static_cast<int32_t>(message.code));
  put(bytes, message.failed);
  put_text(bytes, name);
  put_text(bytes, body);
  return std::make_shared<const std::string>(std::move(bytes));
}

std::optional<Message> decode(std::string_view payload) {
  Reader reader(payload);
  const auto type = reader.get<uint8_t>();
  Message message;
  message.type = static_cast<Message::Type>(type);
  message.rank = reader.get<int32_t>();
  message.count = reader.get<int32_t>();
  message.number = reader.get<uint64_t>();
  const auto code = reader.get<int32_t>();
  message.code = static_cast<Code>(code);
  message.failed = reader.get<int32_t>();
  message.name = reader.text(kMaxNameBytes);
  message.body = reader.text(kMaxBodyBytes);
  if (!reader.at_end() || !is_type(type) || !is_code(code)) return std::nullopt;
  return message;
}

std::optional<size_t> frame_length(std::string_view bytes) {
  const auto length = Reader(bytes).get<uint32_t>();
  if (length > kMaxFrameBytes) return std::nullopt;
  return length;
}

}  // namespace tutti::internal
