// What the two ends of a line say to each other: frames of numbers, bytes and statuses. Both ends are the same program.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/base/status.h"

namespace tutti::internal::conformance {

// Without the other guest no test says anything any more: the program ends.
[[noreturn]] inline void give_up(const std::string& why) {
  std::cout << "between guests: " << why << std::endl;
  std::_Exit(EXIT_FAILURE);
}

template <class T>
concept Number = std::integral<T> || std::is_enum_v<T>;

class Frame {
 public:
  using Length = uint64_t;

  template <Number T>
  Frame& operator<<(T value) {
    return append(&value, sizeof value);
  }
  Frame& operator<<(std::span<const std::byte> bytes) {
    return (*this << bytes.size()).append(bytes.data(), bytes.size());
  }
  Frame& operator<<(std::string_view text) { return *this << std::as_bytes(std::span(text)); }
  Frame& operator<<(const Status& status) {
    return *this << status.code() << status.failed_rank() << std::string_view(status.message());
  }

  // As it goes over the line: its length first.
  std::span<const std::byte> encoded() {
    const Length length = bytes_.size() - sizeof(Length);
    std::memcpy(bytes_.data(), &length, sizeof length);
    return bytes_;
  }

 private:
  Frame& append(const void* data, size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + bytes);
    return *this;
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(sizeof(Length));
};

template <class... Parts>
Frame frame_of(const Parts&... parts) {
  Frame frame;
  (frame << ... << parts);
  return frame;
}

// Takes a frame apart, in the order in which it was put together.
class Reader {
 public:
  explicit Reader(std::vector<std::byte> frame) : frame_(std::move(frame)), rest_(frame_) {}
  Reader(const Reader&) = delete;
  Reader(Reader&&) = default;
  Reader& operator=(const Reader&) = delete;
  Reader& operator=(Reader&&) = default;

  template <Number T>
  T get() {
    T value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  // Until the reader is gone.
  std::span<const std::byte> bytes() { return take(get<size_t>()); }
  std::string text() {
    const auto found = bytes();
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }
  Status status() {
    const auto code = get<Code>();
    const auto failed_rank = get<int>();
    std::string message = text();
    if (code == Code::ok) return {};
    return failed_rank >= 0 ? Status::peer_failed(failed_rank, std::move(message)) : Status(code, std::move(message));
  }

 private:
  std::span<const std::byte> take(size_t count) {
    if (count > rest_.size()) give_up("a frame ends too early");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::vector<std::byte> frame_;
  std::span<const std::byte> rest_;
};

}  // namespace tutti::internal::conformance
