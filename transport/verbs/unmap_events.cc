#include "transport/verbs/unmap_events.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "src/base/fork.h"
#include "src/base/thread.h"

namespace tutti::internal::verbs {
namespace {

constexpr uint64_t kNeeded = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP;

// Without page faults in the kernel's own accesses, which is what users without privileges may have; kernels before
// 5.11 do not know the flag.
int open_userfault() {
  const auto open = [](int flags) {
    return static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags));
  };
  const int fd = open(UFFD_USER_MODE_ONLY);
  return fd < 0 && errno == EINVAL ? open(0) : fd;
}

// An open descriptor with `features`, and in `features` those that the kernel offers.
Result<int> open_with(uint64_t& features) {
  const int fd = open_userfault();
  if (fd < 0) {
    const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return Status::system(is_short ? Code::out_of_resources : Code::unsupported, "opening userfaultfd", errno);
  }
  uffdio_api api{UFFD_API, features, 0};
  if (ioctl(fd, UFFDIO_API, &api) != 0) {
    Status failed = Status::system(Code::unsupported, "userfaultfd with features " + std::to_string(features), errno);
    close(fd);
    return failed;
  }
  features = api.features;
  return fd;
}

// How often to look again while watched memory is being changed: until its event is read, but not for ever.
constexpr int kMostLooks = 1000;

// A page for the self-test. Once it is gone, its address may be any other thread's: then it is not unmapped again.
class Page {
 public:
  explicit Page(size_t bytes) : bytes_(bytes), memory_(mmap(nullptr, bytes, kAccess, kKind | MAP_POPULATE, -1, 0)) {}
  Page(const Page&) = delete;
  ~Page() {
    if (is_there_ && memory_ != MAP_FAILED) munmap(memory_, bytes_);
  }
  bool is_mapped() const { return memory_ != MAP_FAILED; }
  MemoryRange range() const {
    const auto begin = reinterpret_cast<uintptr_t>(memory_);
    return {begin, begin + bytes_};
  }

  void give_back() const { madvise(memory_, bytes_, MADV_DONTNEED); }
  void map_over() const { (void)mmap(memory_, bytes_, kAccess, kKind | MAP_FIXED, -1, 0); }
  void move_to(const Page& target) {
    is_there_ = mremap(memory_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, target.memory_) == MAP_FAILED;
  }
  void unmap() { is_there_ = munmap(memory_, bytes_) != 0; }

 private:
  static constexpr int kAccess = PROT_READ | PROT_WRITE;
  static constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS;

  size_t bytes_;
  void* memory_;
  bool is_there_ = true;
};

}  // namespace

Result<std::unique_ptr<UnmapEvents>> UnmapEvents::start() {
  uint64_t offered = 0;
  const Result<int> probe = open_with(offered);  // one descriptor cannot first say what there is and then be given it
  TUTTI_RETURN_IF_ERROR(probe.status());
  close(probe.value());
  if ((offered & kNeeded) != kNeeded)
    return Status(Code::unsupported, "userfaultfd offers features " + std::to_string(offered) + ", not all of " +
                                         std::to_string(kNeeded) + " (unmap, remove, remap)");
  uint64_t features = kNeeded;
  const Result<int> fd = open_with(features);
  TUTTI_RETURN_IF_ERROR(fd.status());
  std::unique_ptr<UnmapEvents> events(new UnmapEvents(fd.value()));
  TUTTI_RETURN_IF_ERROR(events->start_reading());
  TUTTI_RETURN_IF_ERROR(events->self_test());
  return events;
}

UnmapEvents::UnmapEvents(int userfault_fd)
    : page_bytes_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), epoch_(process_epoch()), userfault_fd_(userfault_fd) {
  close_in_child(userfault_fd_);
}

Status UnmapEvents::start_reading() {
  stop_fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_fd_) return Status::system(Code::out_of_resources, "making an eventfd", errno);
  Result<std::thread> thread = start_thread("the thread for unmap events", [this] { run(); });
  TUTTI_RETURN_IF_ERROR(thread.status());
  thread_ = std::move(thread.value());
  return {};
}

UnmapEvents::~UnmapEvents() {
  if (process_epoch() != epoch_) {  // a child: no thread to join, and the descriptor's number is another's by now
    if (thread_.joinable()) thread_.detach();
    return;
  }
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!write(stop_fd_.get(), &one, sizeof(one));
    thread_.join();
  } else {
    release_from_fork(userfault_fd_);
    close(userfault_fd_);
  }
}

Status UnmapEvents::self_test() {
  struct Case {
    const char* what;
    void (*change)(Page& page, const Page& target);
  };
  constexpr Case kCases[] = {
      {"madvise", [](Page& page, const Page&) { page.give_back(); }},
      {"mmap over memory", [](Page& page, const Page&) { page.map_over(); }},
      {"mremap", [](Page& page, const Page& target) { page.move_to(target); }},
      {"munmap", [](Page& page, const Page&) { page.unmap(); }},
  };
  for (const Case& each : kCases) {
    Page page(page_bytes_);
    const Page target(page_bytes_);
    if (!page.is_mapped() || !target.is_mapped())
      return Status::system(Code::out_of_resources, "mapping pages to test unmap events with", errno);
    if (watch(page.range()) != Watch::reliable)
      return Status(Code::unsupported, "userfaultfd does not watch memory without taking its page faults");
    each.change(page, target);
    if (!sees(page.range())) return Status(Code::unsupported, std::string("userfaultfd does not tell of ") + each.what);
  }
  return test_settle();
}

// Another thread unmaps a page while the event cannot be read.
Status UnmapEvents::test_settle() {
  Page page(page_bytes_);
  if (!page.is_mapped() || watch(page.range()) != Watch::reliable || !settle())
    return Status(Code::unsupported, "userfaultfd does not say that no memory is being unmapped");
  std::unique_lock unread(mutex_);
  auto unmapping = start_thread("a thread to test unmap events with", [&page] { page.unmap(); });
  TUTTI_RETURN_IF_ERROR(unmapping.status());
  pollfd polled{userfault_fd_, POLLIN, 0};
  constexpr int kTimeoutMs = 10'000;
  poll(&polled, 1, kTimeoutMs);
  const bool is_known = is_changing();
  unread.unlock();
  unmapping->join();
  if (!is_known || !sees(page.range()))
    return Status(Code::unsupported, "userfaultfd does not say that memory is being unmapped");
  return {};
}

bool UnmapEvents::sees(MemoryRange range) {
  Events events;
  const size_t count = has_any() ? take(events) : 0;
  return std::any_of(events.begin(), events.begin() + count,
                     [&](const Event& event) { return event.range.contains(range); });
}

UnmapEvents::Watch UnmapEvents::watch(MemoryRange range) {
  uffdio_register request{{range.begin, range.bytes()}, UFFDIO_REGISTER_MODE_WP, 0};
  if (ioctl(userfault_fd_, UFFDIO_REGISTER, &request) != 0) return Watch::refused;
  const bool has_huge_pages = (request.ioctls & (uint64_t{1} << _UFFDIO_ZEROPAGE)) == 0;  // hugetlb: shared or not
  if (has_huge_pages || !is_private(range.begin) || !is_private(range.end - page_bytes_)) return Watch::unreliable;
  return Watch::reliable;
}

void UnmapEvents::unwatch(MemoryRange range) {
  uffdio_range request{range.begin, range.bytes()};
  (void)ioctl(userfault_fd_, UFFDIO_UNREGISTER, &request);  // fails where there is nothing any more
}

// Whether a watched page is private anonymous memory, the one kind for which UFFDIO_CONTINUE is an invalid argument.
// For shared memory it maps a page that is there anyway: nothing that could be noticed.
bool UnmapEvents::is_private(uintptr_t page) const {
  for (int i = 0; i < kMostLooks; ++i) {
    uffdio_continue request{{page, page_bytes_}, 0, 0};
    if (ioctl(userfault_fd_, UFFDIO_CONTINUE, &request) == 0) return false;
    if (errno != EAGAIN) return errno == EINVAL;
    sched_yield();
  }
  return false;
}

// Protecting nothing is an invalid argument, but the kernel looks for changes first, and takes no lock for that.
bool UnmapEvents::is_changing() const {
  uffdio_writeprotect nothing{};
  return ioctl(userfault_fd_, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EAGAIN;
}

bool UnmapEvents::settle() const {
  for (int i = 0; i < kMostLooks; ++i) {
    if (!is_changing()) return true;
    sched_yield();
  }
  return false;
}

size_t UnmapEvents::take(Events& events) {
  const std::lock_guard lock(mutex_);
  std::copy_n(noted_.begin(), noted_count_, events.begin());
  pending_.store(false, std::memory_order_relaxed);  // under the mutex: a later event raises it again
  return std::exchange(noted_count_, 0);
}

void UnmapEvents::run() {
  std::array<pollfd, 2> polled{pollfd{userfault_fd_, POLLIN, 0}, pollfd{stop_fd_.get(), POLLIN, 0}};
  while (polled[1].revents == 0) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) read_events();
  }
  release_from_fork(userfault_fd_);
  close(userfault_fd_);  // before the thread's end, which frees memory
}

void UnmapEvents::read_events() {
  std::array<uffd_msg, 16> messages;
  const std::lock_guard lock(mutex_);
  // pairs with has_any: before the read, which lets the unmapping thread go on
  pending_.store(true, std::memory_order_release);
  const ssize_t bytes = read(userfault_fd_, messages.data(), sizeof(messages));
  for (size_t i = 0; bytes > 0 && i < static_cast<size_t>(bytes) / sizeof(uffd_msg); ++i) note(messages[i]);
}

void UnmapEvents::note(const uffd_msg& message) {
  if (message.event == UFFD_EVENT_REMAP) {
    const auto& remap = message.arg.remap;
    note(Event{{remap.from, remap.from + remap.len}, false});
    note(Event{{remap.to, remap.to + remap.len}, true});
  } else if (message.event == UFFD_EVENT_UNMAP || message.event == UFFD_EVENT_REMOVE) {
    note(Event{{message.arg.remove.start, message.arg.remove.end}, message.event == UFFD_EVENT_REMOVE});
  }
}

// Beyond the space there is, the last event grows to hold what comes.
void UnmapEvents::note(Event event) {
  if (noted_count_ < noted_.size()) {
    noted_[noted_count_++] = event;
    return;
  }
  MemoryRange& last = noted_.back().range;
  last = {std::min(last.begin, event.range.begin), std::max(last.end, event.range.end)};
  noted_.back().is_mapped = false;
}

}  // namespace tutti::internal::verbs
