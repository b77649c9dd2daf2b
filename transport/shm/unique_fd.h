// File descriptors of this process alone.
#pragma once

#include <utility>

#include "src/base/fork.h"
#include "src/base/unique_fd.h"

namespace tutti::internal {

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
