// This rank's region of shared memory, and the mappings of its peers' regions.
//
// A region is a memfd of fixed, large size (as much as the machine has memory), mapped whole on both sides, so that an
// offset names the same bytes everywhere and nothing has to be mapped later. Only pages that are used cost memory. The
// memfd is sealed against shrinking: a mapped page never vanishes. It has no name, and goes with its last user.
//
// reserve() may run on any thread; allocate and release on the owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/status.h"
#include "transport/shm/layout.h"
#include "transport/shm/unique_fd.h"
#include "transport/shm/window_allocator.h"

namespace tutti::internal::shm {

// Mapped memory, unmapped with the last user.
class Mapping {
 public:
  Mapping(std::byte* base, size_t bytes) : base_(base), bytes_(bytes) {}
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* base() const { return base_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  size_t bytes_;
};

struct PeerMapping {
  std::shared_ptr<Mapping> mapping;
  bool same_process = false;  // the owner is in this process: its mapping is shared, and so are all its addresses
};

class Region {
 public:
  // Its memory lies on the NUMA node `numa_node` (by the system's number) as far as that has room; -1: wherever.
  static Result<std::unique_ptr<Region>> create(int rank, int world_size, int numa_node = -1);
  ~Region();

  int fd() const { return fd_.get(); }
  uint64_t nonce() const { return nonce_; }
  const Layout& layout() const { return layout_; }
  std::byte* base() const { return mapping_->base(); }
  size_t bytes() const { return mapping_->bytes(); }
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(base() + offset);
  }
  bool contains(const void* memory, size_t length) const {
    const auto* begin = static_cast<const std::byte*>(memory);
    return begin >= base() && length <= bytes() && static_cast<size_t>(begin - base()) <= bytes() - length;
  }

  // Gives [offset, offset + length) memory now, so that touching it later cannot fail.
  Status reserve(size_t offset, size_t length);

  // Zeroed, page aligned, reserved.
  Result<void*> allocate(size_t length);
  Status release(void* memory);

 private:
  Region(UniqueFd fd, std::shared_ptr<Mapping> mapping, uint64_t nonce, const Layout& layout);
  Status populate(size_t offset, size_t length);

  ParentOnlyFd fd_;
  std::shared_ptr<Mapping> mapping_;
  uint64_t nonce_;
  Layout layout_;
  WindowAllocator windows_;
};

// Maps the region behind `fd` that says it is `nonce`'s; writable only where rank `self` writes.
Result<PeerMapping> map_peer_region(int fd, uint64_t nonce, uint64_t bytes, int self, const Layout& layout);

// 8 random bytes of the kernel's.
uint64_t random_u64();

}  // namespace tutti::internal::shm
