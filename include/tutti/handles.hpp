// The resources of <tutti/tutti.hpp> beside the group: Work, an operation under way, and Buffer, memory from a group.
// Both have one owner, move, and give back what they hold when they end.
#ifndef TUTTI_HANDLES_HPP
#define TUTTI_HANDLES_HPP

#include <cstddef>
#include <memory>
#include <tutti/values.hpp>
#include <utility>

namespace tutti {

namespace detail {

// Throws what the last call of this thread came to.
[[noreturn]] inline void fail(tutti_status status) {
  throw Error(static_cast<Status>(status), tutti_last_error(),
              status == TUTTI_PEER_FAILED ? tutti_last_failed_rank() : -1);
}
inline void check(tutti_status status) {
  if (status != TUTTI_OK) fail(status);
}

}  // namespace detail

// An asynchronous operation. Its buffers must last, and its results must not be looked at, until it is done. It keeps
// its group. One that ends is waited for. An empty one (moved from) is invalid_argument to wait for.
class Work {
 public:
  Work() = default;
  Work(std::shared_ptr<tutti_group> group, tutti_work* work) : group_(std::move(group)), work_(work) {}

  // Blocks until the operation is done. Throws what it came to; may be called again, and then says the same.
  void wait() { detail::check(tutti_work_wait(work_.get())); }

  // Blocks for at most `timeout`, and says whether the operation is done; throws if it is, and has failed.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> timeout) {
    int done = 0;
    detail::check(tutti_work_wait_for(work_.get(), microseconds(timeout), &done));
    return done != 0;
  }

  // wait_for that does not block.
  bool test() {
    int done = 0;
    detail::check(tutti_work_test(work_.get(), &done));
    return done != 0;
  }

  explicit operator bool() const noexcept { return work_ != nullptr; }

 private:
  // Rounded up, and the longest where the duration is longer than that.
  template <class Rep, class Period>
  static int64_t microseconds(std::chrono::duration<Rep, Period> timeout) {
    using std::chrono::duration;
    if (duration<double, std::micro>(timeout).count() >= 9.2e18) return INT64_MAX;
    return std::chrono::ceil<std::chrono::duration<int64_t, std::micro>>(timeout).count();
  }

  // Waits for the operation if that was not done; its failure is then nobody's.
  struct Free {
    void operator()(tutti_work* work) const { static_cast<void>(tutti_work_free(work)); }
  };
  std::shared_ptr<tutti_group> group_;  // outlives the work
  std::unique_ptr<tutti_work, Free> work_;
};

// A window: zeroed memory that the ranks of a node reach directly. Operations on windows move data once. It is a range
// of T, and keeps its group alive.
template <Element T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<tutti_group> group, std::size_t count) : group_(std::move(group)) {
    if (count > SIZE_MAX / sizeof(T))
      throw Error(Status::out_of_resources, "alloc: " + std::to_string(count) + " elements of " +
                                                std::to_string(sizeof(T)) + " bytes are more than memory can be");
    void* memory = nullptr;
    detail::check(tutti_alloc(group_.get(), count * sizeof(T), &memory));
    data_ = static_cast<T*>(memory);
    size_ = count;
  }
  ~Buffer() {
    if (data_ != nullptr) static_cast<void>(tutti_free(group_.get(), data_));
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(group_, other.group_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  std::shared_ptr<tutti_group> group_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tutti

#endif
