// What a call came to: a code that says what the caller can do, and a message for people.
// An ok Status is one null pointer: it costs nothing on the fast path, where the code for errors is only called.
// Errors copy their message.
#pragma once

#include <tutti/tutti.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace tutti::internal {

enum class Code : int {
  ok = TUTTI_OK,
  invalid_argument = TUTTI_INVALID_ARGUMENT,
  unsupported = TUTTI_UNSUPPORTED,
  out_of_resources = TUTTI_OUT_OF_RESOURCES,
  peer_failed = TUTTI_PEER_FAILED,
  timeout = TUTTI_TIMEOUT,
  aborted = TUTTI_ABORTED,
  mismatch = TUTTI_MISMATCH,
  internal = TUTTI_INTERNAL,
};

// "peer_failed" and so on; "?" for a value that is no code.
const char* code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(const Status& other) : detail_(other.detail_ ? copy(*other.detail_) : nullptr) {}
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status& operator=(Status&&) noexcept = default;

  // The world rank `rank` died or left.
  static Status peer_failed(int rank, std::string message);
  // A system call failed: `what` names call and object, errno's text is added.
  static Status system(Code code, std::string what, int error_number);

  bool ok() const { return detail_ == nullptr; }
  explicit operator bool() const { return ok(); }
  Code code() const { return detail_ ? detail_->code : Code::ok; }
  const std::string& message() const;
  // The failed world rank of a peer_failed, else -1.
  int failed_rank() const { return detail_ ? detail_->failed_rank : -1; }

 private:
  struct Detail {
    Code code;
    int failed_rank = -1;
    std::string message;
  };
  struct Delete {
    [[gnu::cold]] void operator()(const Detail* detail) const;
  };
  [[gnu::cold]] static const Detail* copy(const Detail& detail);
  std::unique_ptr<const Detail, Delete> detail_;
};

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T* operator->() { return &value(); }
  T& operator*() { return value(); }
  // Ok where there is a value.
  Status status() const { return ok() ? Status() : std::get<1>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace tutti::internal

// Returns from the calling function with the error of `expression`, if it has one.
#define TUTTI_RETURN_IF_ERROR(expression)                                             \
  do {                                                                                \
    if (auto tutti_status_ = (expression); !tutti_status_.ok()) return tutti_status_; \
  } while (false)
