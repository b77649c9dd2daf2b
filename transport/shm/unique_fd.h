// File descriptors with one owner.
#pragma once

#include <unistd.h>

#include <utility>

#include "src/base/fork.h"

namespace tutti::internal {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// One that children made by fork do not keep: peers take its closing for our end.
class ParentOnlyFd {
 public:
  ParentOnlyFd() = default;
  explicit ParentOnlyFd(UniqueFd fd) : fd_(std::move(fd)) {
    if (fd_) close_in_child(fd_.get());
  }
  ParentOnlyFd(ParentOnlyFd&&) noexcept = default;
  ParentOnlyFd& operator=(ParentOnlyFd&&) noexcept = default;
  ~ParentOnlyFd() {
    if (fd_) release_from_fork(fd_.get());
  }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  UniqueFd take() {
    if (fd_) release_from_fork(fd_.get());
    return std::move(fd_);
  }

 private:
  UniqueFd fd_;
};

}  // namespace tutti::internal
