#include "transport/shm/region.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <map>
#include <mutex>

#include "src/base/numa.h"
#include "transport/shm/memory_limit.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tutti::internal::shm {
namespace {

constexpr size_t kSmallestWindows = size_t{64} << 20;
constexpr size_t kAllRegions = size_t{64} << 40;  // address space for all regions of a node

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// The regions of this process by nonce, so that ranks that are threads of one process use one mapping.
class LocalRegions {
 public:
  static LocalRegions& instance() {
    static LocalRegions* regions = new LocalRegions;  // lives on for regions in static objects
    return *regions;
  }
  void add(uint64_t nonce, const std::shared_ptr<Mapping>& mapping) {
    std::lock_guard lock(mutex_);
    regions_[nonce] = mapping;
  }
  void remove(uint64_t nonce) {
    std::lock_guard lock(mutex_);
    regions_.erase(nonce);
  }
  std::shared_ptr<Mapping> find(uint64_t nonce) {
    std::lock_guard lock(mutex_);
    const auto it = regions_.find(nonce);
    return it == regions_.end() ? nullptr : it->second.lock();
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::weak_ptr<Mapping>> regions_;
};

// Maps `bytes` of fd at an address that is aligned for huge pages.
Result<std::shared_ptr<Mapping>> map_aligned(int fd, size_t bytes, int protection) {
  constexpr size_t kAlign = Layout::kWindowAlignment;
  void* wide = mmap(nullptr, bytes + kAlign, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (wide == MAP_FAILED)
    return Status::system(Code::out_of_resources, fmt::format("mmap of {} bytes of address space", bytes), errno);
  auto* const start = static_cast<std::byte*>(wide);
  auto* const base = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<size_t>(start), kAlign));
  if (base > start) munmap(start, static_cast<size_t>(base - start));
  munmap(base + bytes, static_cast<size_t>(start + kAlign - base));
  // After mlockall(MCL_FUTURE) the kernel would fill a mapping at once, with all the machine's memory: so it is made
  // without access, unlocked, and opened then.
  if (mmap(base, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED ||
      munlock(base, bytes) != 0 || mprotect(base, bytes, protection) != 0) {
    const int error = errno;
    munmap(base, bytes);
    return Status::system(Code::out_of_resources, fmt::format("mmap of a shared region of {} bytes", bytes), error);
  }
  return std::make_shared<Mapping>(base, bytes);
}

struct Backing {
  UniqueFd fd;
  std::shared_ptr<Mapping> mapping;
};

// Not executable, which some systems insist on; kernels before 6.3 do not know the flag.
UniqueFd make_memfd() {
  UniqueFd fd(memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) fd = UniqueFd(memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  return fd;
}

Result<Backing> make_backing(size_t bytes) {
  UniqueFd fd = make_memfd();
  if (!fd) return Status::system(Code::out_of_resources, "memfd_create for the shared region", errno);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return Status::system(Code::out_of_resources, fmt::format("ftruncate of the shared region to {} bytes", bytes),
                          errno);
  auto mapping = map_aligned(fd.get(), bytes, PROT_READ | PROT_WRITE);
  if (!mapping) return mapping.status();
  // Peers rely on the size: a mapped page must not vanish under them.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return Status::system(Code::unsupported, "fcntl(F_ADD_SEALS) on the shared region", errno);
  return Backing{std::move(fd), std::move(*mapping)};
}

// How large a region may be: windows for all the memory there is, within the limits on address space and file size.
size_t wanted_bytes(const Layout& layout, int world_size) {
  const auto physical = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  size_t windows = std::bit_ceil(std::max(physical, kSmallestWindows));
  windows = std::min(windows, kAllRegions / static_cast<size_t>(world_size));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    // Half of what is allowed, for the regions of all ranks.
    const size_t fair = limit.rlim_cur / 2 / static_cast<size_t>(world_size);
    windows = std::min(windows, std::max(round_up(fair, layout.page_bytes()), kSmallestWindows));
  }
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    // A larger ftruncate would raise SIGXFSZ.
    const size_t most = limit.rlim_cur > layout.windows_offset() ? limit.rlim_cur - layout.windows_offset() : 0;
    windows = std::min(windows, most / layout.page_bytes() * layout.page_bytes());
  }
  return layout.windows_offset() + windows;
}

}  // namespace

uint64_t random_u64() {
  uint64_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

Mapping::~Mapping() { munmap(base_, bytes_); }

Region::Region(UniqueFd fd, std::shared_ptr<Mapping> mapping, uint64_t nonce, const Layout& layout)
    : fd_(ParentOnlyFd(std::move(fd))),
      mapping_(std::move(mapping)),
      nonce_(nonce),
      layout_(layout),
      windows_(layout.windows_offset(), mapping_->bytes(), layout.page_bytes(), Layout::kWindowAlignment) {}

Region::~Region() { LocalRegions::instance().remove(nonce_); }

Result<std::unique_ptr<Region>> Region::create(int rank, int world_size, int numa_node) {
  const Layout layout(world_size, page_bytes());
  rlimit files{};
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < layout.windows_offset())
    return Status(Code::out_of_resources,
                  fmt::format("the limit on file sizes (ulimit -f, RLIMIT_FSIZE) is {} bytes: shared memory between {} "
                              "ranks needs {}",
                              files.rlim_cur, world_size, layout.windows_offset()));
  size_t bytes = wanted_bytes(layout, world_size);
  auto backing = make_backing(bytes);
  while (!backing && backing.status().code() == Code::out_of_resources &&
         bytes / 2 > layout.windows_offset() + kSmallestWindows) {
    bytes = round_up(bytes / 2, layout.page_bytes());
    backing = make_backing(bytes);
  }
  if (!backing) return backing.status();
  // Of the file's pages, whoever touches them first.
  prefer_numa_node(backing->mapping->base(), backing->mapping->bytes(), numa_node);
  std::unique_ptr<Region> region(new Region(std::move(backing->fd), std::move(backing->mapping), random_u64(), layout));
  // Header, doorbell, consumed and withdrawn words; the arena. Rings follow when their sender connects.
  TUTTI_RETURN_IF_ERROR(region->reserve(0, layout.ring_offset(0)));
  TUTTI_RETURN_IF_ERROR(region->reserve(layout.arena_offset(), kArenaBytes));
  *region->at<RegionHeader>(0) = {.magic = kMagic,
                                  .version = kVersion,
                                  .rank = rank,
                                  .nonce = region->nonce_,
                                  .bytes = bytes,
                                  .world_size = world_size,
                                  .pid = getpid()};
  LocalRegions::instance().add(region->nonce_, region->mapping_);
  return region;
}

// In pieces, so that ranks which take memory at the same time see each other's: filling what is not there would bring
// the kernel's out-of-memory killer rather than an error.
Status Region::reserve(size_t offset, size_t length) {
  constexpr size_t kPiece = size_t{64} << 20;
  for (size_t done = 0; done < length; done += kPiece) {
    const size_t bytes = std::min(kPiece, length - done);
    if (length > kPiece && available_memory() < bytes + kPiece)
      return Status(Code::out_of_resources,
                    fmt::format("{} bytes of shared memory: after {} of them this machine or container has none left",
                                length, done));
    TUTTI_RETURN_IF_ERROR(populate(offset + done, bytes));
  }
  return {};
}

Status Region::populate(size_t offset, size_t length) {
  std::byte* const memory = base() + offset;
  // Faulting the pages in through the mapping honours huge pages and the caller's NUMA policy; it reports a lack of
  // memory where a plain store would raise SIGBUS.
  while (madvise(memory, length, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL)
      return Status::system(Code::out_of_resources, fmt::format("{} bytes of shared memory", length), errno);
    // Linux before 5.14.
    if (fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(length)) == 0) return {};
    if (errno != EINTR)
      return Status::system(Code::out_of_resources, fmt::format("fallocate of {} bytes of shared memory", length),
                            errno);
  }
  return {};
}

Result<void*> Region::allocate(size_t length) {
  // Asking for what is not there would bring the kernel's out-of-memory killer rather than an error.
  if (const size_t available = available_memory(); length > available)
    return Status(Code::out_of_resources,
                  fmt::format("a window of {} bytes: this machine or container has {} bytes left", length, available));
  const auto offset = windows_.allocate(length);
  if (!offset)
    return Status(Code::out_of_resources,
                  fmt::format("a window of {} bytes: the region of {} bytes has {} in one piece", length, bytes(),
                              windows_.largest_free()));
  std::byte* const memory = base() + *offset;
  const size_t reserved = round_up(length, layout_.page_bytes());
  // Best effort: small pages are right too.
  if (reserved >= Layout::kWindowAlignment) madvise(memory, reserved, MADV_HUGEPAGE);
  if (Status status = reserve(*offset, reserved); !status.ok()) {
    (void)release(memory);
    return status;
  }
  return static_cast<void*>(memory);
}

Status Region::release(void* memory) {
  const auto offset = contains(memory, 1) ? static_cast<size_t>(static_cast<std::byte*>(memory) - base()) : 0;
  const auto length = windows_.release(offset);
  if (!length)
    return Status(Code::invalid_argument, fmt::format("{} is not the start of a window of this rank", memory));
  // The hole gives the memory back, and reads as zeros when it is allocated again.
  while (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                   static_cast<off_t>(*length)) != 0) {
    if (errno != EINTR)
      return Status::system(Code::internal, fmt::format("punching a hole of {} bytes into the shared region", *length),
                            errno);
  }
  return {};
}

Result<PeerMapping> map_peer_region(int fd, uint64_t nonce, uint64_t bytes, int self, const Layout& layout) {
  if (auto local = LocalRegions::instance().find(nonce)) return PeerMapping{std::move(local), true};
  struct stat found {};
  if (fstat(fd, &found) != 0) return Status::system(Code::peer_failed, "fstat of a peer's region", errno);
  const int seals = fcntl(fd, F_GET_SEALS);
  if (static_cast<uint64_t>(found.st_size) != bytes || bytes < layout.windows_offset() || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0)
    return Status(Code::mismatch, fmt::format("a peer's region: {} bytes announced, {} bytes found, seals {:#x}", bytes,
                                              found.st_size, seals));
  auto mapping = map_aligned(fd, bytes, PROT_READ);
  if (!mapping) return mapping.status();
  std::byte* const base = (*mapping)->base();
  for (const auto& [offset, length] : {std::pair(layout.doorbell_offset(), layout.page_bytes()),
                                       std::pair(layout.ring_offset(self), layout.ring_bytes())})
    if (mprotect(base + offset, length, PROT_READ | PROT_WRITE) != 0)
      return Status::system(Code::out_of_resources, "mprotect of a ring in a peer's region", errno);
  madvise(base, bytes, MADV_DONTDUMP);  // the owner's core dump has it
  const auto* header = reinterpret_cast<const RegionHeader*>(base);
  if (header->magic != kMagic || header->version != kVersion || header->nonce != nonce)
    return Status(Code::mismatch, "a peer's region does not carry the nonce that the peer announced");
  return PeerMapping{std::move(*mapping), false};
}

}  // namespace tutti::internal::shm
