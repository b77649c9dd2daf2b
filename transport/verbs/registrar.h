// Knows which memory is registered with the ports, and registers what is not: windows and the user's own registrations
// stay; other memory is registered on use and kept in a cache, while unmap events prove that it is still the same.
//
// Private anonymous memory is cached, by whole pages. Other memory (of files, shared, of hugetlbfs) is registered for
// one transfer, and so is all where there are no unmap events. What is unmapped while in use is found by no acquire
// from then on, and deregistered when its last user releases it; what is unmapped while idle, at the next call: until
// then its pages stay taken.
//
// Owner's thread. Unmap events come on a thread of their own, which only writes them down: see unmap_events.h, also for
// why no stale registration is used. Nothing is locked while the domain registers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/base/status.h"
#include "transport/windows.h"

namespace tutti::internal::verbs {

inline constexpr size_t kMaxPorts = 8;

// Memory known to all ports, and its keys by port.
struct Registration {
  struct Key {
    uint32_t local = 0;
    uint32_t remote = 0;
  };
  std::array<Key, kMaxPorts> keys;
  bool is_writable = true;  // false: memory that can be sent from only
};

// Registers memory with every port at once; what the registrar is tested with need not be a device.
class MemoryDomain {
 public:
  struct Handle {
    std::array<Registration::Key, kMaxPorts> keys{};
    std::array<void*, kMaxPorts> regions{};
  };
  virtual ~MemoryDomain() = default;
  // Errors: out_of_resources (with the limit and what was needed), invalid_argument (memory that is not there).
  virtual Result<Handle> add(void* memory, size_t bytes, bool writable) = 0;
  virtual void remove(const Handle& handle) = 0;
};

struct RegistrarOptions {
  uint64_t cache_bytes = uint64_t{1} << 32;  // how much may stay registered that nobody uses
  size_t cache_entries = 4096;  // likewise, in how many pieces: each can split a mapping of the kernel's in
                                // three, of which a process has 65530 (vm.max_map_count)
  bool cache = true;            // false: as where unmap events cannot be proven to arrive
};

class Registrar final : public Registry {
 public:
  Registrar(MemoryDomain& domain, const RegistrarOptions& options);
  ~Registrar() override;

  // Writable memory, which stays until `remove`, and must stay mapped. To the byte: peers reach no neighbours. Errors:
  // those of the domain, invalid_argument (no bytes, or it overlaps what was added).
  Status add(void* memory, size_t bytes) override;
  // While in use, it stays registered until the last release. invalid_argument: not what `add` got.
  Status remove(void* memory) override;

  // Whether all of it lies in one piece that was added.
  bool is_added(const void* memory, size_t bytes) const;

  // For a transfer: added memory, cached memory, or registered now. Each one is given back by `release`. Nothing is
  // allocated for added or cached memory; cached memory costs a system call, which asks whether it is still the same.
  // Null: it cannot be registered, and `why` says so (it may be null). `writable`: for received data too; without,
  // memory that can only be read will do.
  const Registration* acquire(const void* memory, size_t bytes, bool writable, Status* why);
  void release(const Registration* registration);

  // Whether unmap events were proven to arrive, so that there is a cache.
  bool has_cache() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tutti::internal::verbs
