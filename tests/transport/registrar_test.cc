// The registrar, on a domain that registers nothing but remembers everything.
#include "transport/verbs/registrar.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/allocations.h"

namespace tutti::internal::verbs {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

struct Piece {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  bool writable = false;
  std::vector<uint64_t> generations;  // of the pages in it, when it was registered: see the test against a model

  bool contains(const std::byte* memory, size_t bytes) const { return begin <= memory && memory + bytes <= end; }
};

// What it registered has a number, which is its local key.
class FakeDomain : public MemoryDomain {
 public:
  ~FakeDomain() override { EXPECT_TRUE(live_.empty()) << live_.size() << " registrations were left behind"; }

  Result<Handle> add(void* memory, size_t bytes, bool writable) override {
    ++tries;
    const auto begin = static_cast<std::byte*>(memory);
    if (writable && read_only.contains(begin, 1)) return Status(Code::invalid_argument, "this memory is read-only");
    if (live_bytes() + bytes > limit_bytes) return Status(Code::out_of_resources, "more than may be locked");
    ++adds;
    const uint32_t number = ++last_number_;
    live_[number] = {begin, begin + bytes, writable, snapshot ? snapshot(begin, bytes) : std::vector<uint64_t>()};
    Handle handle;
    handle.keys[0] = {number, number + 1'000'000};
    return handle;
  }
  void remove(const Handle& handle) override {
    ++removes;
    EXPECT_EQ(live_.erase(handle.keys[0].local), 1U) << "deregistered twice";
  }

  // What the registration stands for; an empty piece: it is deregistered.
  Piece of(const Registration* registration) const {
    const auto it = live_.find(registration->keys[0].local);
    return it != live_.end() ? it->second : Piece{};
  }
  size_t live() const { return live_.size(); }
  size_t live_bytes() const {
    size_t sum = 0;
    for (const auto& [number, piece] : live_) sum += static_cast<size_t>(piece.end - piece.begin);
    return sum;
  }

  int adds = 0;
  int tries = 0;
  int removes = 0;
  size_t limit_bytes = SIZE_MAX;
  Piece read_only;
  std::function<std::vector<uint64_t>(std::byte*, size_t)> snapshot;

 private:
  uint32_t last_number_ = 0;
  std::map<uint32_t, Piece> live_;
};

// Private anonymous pages with others around them, so that nothing else is mapped next to them.
class Pages {
 public:
  explicit Pages(size_t count, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1) : count_(count) {
    reserved_ =
        static_cast<std::byte*>(mmap(nullptr, (count + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(mmap((*this)[0], count * kPage, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0), MAP_FAILED);
  }
  Pages(const Pages&) = delete;
  ~Pages() { munmap(reserved_, (count_ + 2) * kPage); }

  std::byte* operator[](size_t page) const { return reserved_ + (page + 1) * kPage; }
  void unmap(size_t page, size_t count) const {
    ASSERT_EQ(munmap((*this)[page], count * kPage), 0);
    reserve(page, count);  // at once, before the test's own machinery takes the address
  }
  // After memory was moved away.
  void reserve(size_t page, size_t count) const {
    mmap((*this)[page], count * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  // New memory, over what there is.
  void map(size_t page, size_t count) const {
    ASSERT_EQ(
        mmap((*this)[page], count * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        (*this)[page]);
  }

 private:
  size_t count_;
  std::byte* reserved_;
};

class RegistrarTest : public ::testing::Test {
 protected:
  void start(const RegistrarOptions& options = {}) { registrar_ = std::make_unique<Registrar>(domain_, options); }
  void start_without_cache() {
    RegistrarOptions options;
    options.cache = false;
    start(options);
  }
  const Registration* acquire(const std::byte* memory, size_t bytes, bool writable = true) {
    Status why;
    const Registration* const registration = registrar_->acquire(memory, bytes, writable, &why);
    if (registration == nullptr) {
      ADD_FAILURE() << why.message();
    } else {
      EXPECT_TRUE(why.ok());
      EXPECT_TRUE(domain_.of(registration).contains(memory, bytes));
      EXPECT_EQ(domain_.of(registration).writable, registration->is_writable);
      EXPECT_TRUE(registration->is_writable || !writable);
    }
    return registration;
  }
  void use(const std::byte* memory, size_t bytes, bool writable = true) {
    if (const Registration* const registration = acquire(memory, bytes, writable)) registrar_->release(registration);
  }
  // How often the domain registered for one use.
  int adds_for_use(const std::byte* memory, size_t bytes, bool writable = true) {
    const int before = domain_.adds;
    use(memory, bytes, writable);
    return domain_.adds - before;
  }

  FakeDomain domain_;
  std::unique_ptr<Registrar> registrar_;
};

#define START_WITH_CACHE(...) \
  start(__VA_ARGS__);         \
  if (!registrar_->has_cache()) GTEST_SKIP() << kNoCache
constexpr const char* kNoCache = "no userfaultfd here that watches memory by write protection: there is no cache";

TEST_F(RegistrarTest, Usage) {
  Registrar registrar(domain_, RegistrarOptions{});
  const Pages pages(8);

  ASSERT_TRUE(registrar.add(pages[0], 4 * kPage).ok());  // a window
  const Registration* window = registrar.acquire(pages[1] + 100, 1000, true, nullptr);
  ASSERT_NE(window, nullptr);
  EXPECT_EQ(domain_.adds, 1);
  EXPECT_EQ(window->keys[0].remote, window->keys[0].local + 1'000'000);
  registrar.release(window);

  for (int i = 0; i < 3; ++i) {  // any memory: registered on use
    Status why;
    const Registration* other = registrar.acquire(pages[5], 2 * kPage, true, &why);
    ASSERT_NE(other, nullptr) << why.message();
    registrar.release(other);
  }
  EXPECT_EQ(domain_.adds, registrar.has_cache() ? 2 : 4);
  EXPECT_TRUE(registrar.remove(pages[0]).ok());
  EXPECT_EQ(domain_.live(), registrar.has_cache() ? 1U : 0U);
}

// Else the tests of the cache would be skipped without a word.
TEST_F(RegistrarTest, HasACacheWhereTheKernelCanWatch) {
  const int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  if (fd < 0) GTEST_SKIP() << "userfaultfd: " << std::strerror(errno);
  uffdio_api api{UFFD_API, 0, 0};
  const Pages pages(1);
  uffdio_register watched{{reinterpret_cast<uintptr_t>(pages[0]), kPage}, UFFDIO_REGISTER_MODE_WP, 0};
  const bool can_watch = ioctl(fd, UFFDIO_API, &api) == 0 && (api.features & UFFD_FEATURE_EVENT_UNMAP) != 0 &&
                         ioctl(fd, UFFDIO_REGISTER, &watched) == 0;
  close(fd);
  start();
  EXPECT_EQ(registrar_->has_cache(), can_watch);
}

// Added memory.

TEST_F(RegistrarTest, AddedMemoryIsExact) {
  start_without_cache();
  const Pages pages(4);
  ASSERT_TRUE(registrar_->add(pages[0] + 10, 100).ok());
  ASSERT_TRUE(registrar_->add(pages[0] + 110, 50).ok());  // a neighbour on the same page
  EXPECT_EQ(domain_.live_bytes(), 150U);
  EXPECT_TRUE(registrar_->is_added(pages[0] + 10, 100));
  EXPECT_TRUE(registrar_->is_added(pages[0] + 30, 1));
  EXPECT_FALSE(registrar_->is_added(pages[0] + 9, 2));
  EXPECT_FALSE(registrar_->is_added(pages[0] + 160, 1));
  EXPECT_FALSE(registrar_->is_added(pages[0] + 10, 150));  // not one piece
  EXPECT_EQ(adds_for_use(pages[0] + 10, 100), 0);
  EXPECT_EQ(adds_for_use(pages[0] + 110, 50), 0);
  EXPECT_EQ(adds_for_use(pages[0] + 10, 101), 1);
}

TEST_F(RegistrarTest, OverlapsOfAddedMemoryAreRefused) {
  start_without_cache();
  const Pages pages(10);
  ASSERT_TRUE(registrar_->add(pages[2], 2 * kPage).ok());
  ASSERT_TRUE(registrar_->add(pages[6], 2 * kPage).ok());
  for (const auto& [page, count] : {std::pair<size_t, size_t>{2, 2}, {1, 2}, {3, 2}, {1, 4}, {3, 1}, {0, 10}, {7, 3}})
    EXPECT_EQ(registrar_->add(pages[page], count * kPage).code(), Code::invalid_argument) << page << ", " << count;
  EXPECT_EQ(domain_.tries, 2);
  EXPECT_TRUE(registrar_->add(pages[4], 2 * kPage).ok());  // between them
}

TEST_F(RegistrarTest, RemoveOfUnknownMemoryIsRefused) {
  start_without_cache();
  const Pages pages(4);
  EXPECT_EQ(registrar_->remove(pages[0]).code(), Code::invalid_argument);
  ASSERT_TRUE(registrar_->add(pages[0], 2 * kPage).ok());
  EXPECT_EQ(registrar_->remove(pages[1]).code(), Code::invalid_argument);
  EXPECT_TRUE(registrar_->remove(pages[0]).ok());
  EXPECT_EQ(registrar_->remove(pages[0]).code(), Code::invalid_argument);
}

TEST_F(RegistrarTest, RemoveWhileInUse) {
  start_without_cache();
  const Pages pages(4);
  ASSERT_TRUE(registrar_->add(pages[0], 2 * kPage).ok());
  const Registration* const first = acquire(pages[0], kPage);
  const Registration* const second = acquire(pages[1], kPage);
  EXPECT_TRUE(registrar_->remove(pages[0]).ok());
  EXPECT_FALSE(registrar_->is_added(pages[0], 1));
  EXPECT_EQ(adds_for_use(pages[0], kPage), 1);  // not found any more
  registrar_->release(first);
  EXPECT_EQ(domain_.live(), 1U);
  EXPECT_TRUE(registrar_->add(pages[0], 2 * kPage).ok());  // again, while the old one is still in use
  registrar_->release(second);
  EXPECT_EQ(domain_.live(), 1U);
}

TEST_F(RegistrarTest, NoBytesAreRefused) {
  start();
  const Pages pages(1);
  EXPECT_EQ(registrar_->add(pages[0], 0).code(), Code::invalid_argument);
  EXPECT_EQ(registrar_->add(pages[0], SIZE_MAX).code(), Code::invalid_argument);
  for (const size_t bytes : {size_t{0}, SIZE_MAX}) {
    Status why;
    EXPECT_EQ(registrar_->acquire(pages[0], bytes, true, &why), nullptr);
    EXPECT_EQ(why.code(), Code::invalid_argument);
    EXPECT_EQ(registrar_->acquire(pages[0], bytes, true, nullptr), nullptr);
    EXPECT_FALSE(registrar_->is_added(pages[0], bytes));
  }
  EXPECT_EQ(domain_.tries, 0);
}

// The cache.

TEST_F(RegistrarTest, WithoutCacheEachUseRegisters) {
  start_without_cache();
  EXPECT_FALSE(registrar_->has_cache());
  const Pages pages(2);
  const Registration* const first = acquire(pages[0], kPage);
  const Registration* const second = acquire(pages[0], kPage);
  EXPECT_EQ(domain_.live(), 2U);
  registrar_->release(first);
  EXPECT_EQ(domain_.live(), 1U);
  registrar_->release(second);
  EXPECT_EQ(domain_.live(), 0U);
}

TEST_F(RegistrarTest, WhatLiesWithinIsFound) {
  START_WITH_CACHE();
  const Pages pages(10);
  EXPECT_EQ(adds_for_use(pages[2] + 100, 3 * kPage), 1);  // rounded out to the pages 2 to 5
  EXPECT_EQ(domain_.live_bytes(), 4 * kPage);
  EXPECT_EQ(adds_for_use(pages[2], 4 * kPage), 0);
  EXPECT_EQ(adds_for_use(pages[4] + 1, 1), 0);
  EXPECT_EQ(adds_for_use(pages[6] - 1, 1), 0);
  EXPECT_EQ(adds_for_use(pages[6] - 1, 2), 1);
  EXPECT_EQ(adds_for_use(pages[2] - 1, 2), 1);
}

// Overlaps stay, each found for what it holds; what lies within a new one goes.
TEST_F(RegistrarTest, OverlappingEntries) {
  START_WITH_CACHE();
  const Pages pages(20);
  EXPECT_EQ(adds_for_use(pages[0], 6 * kPage), 1);
  EXPECT_EQ(adds_for_use(pages[4], 6 * kPage), 1);
  EXPECT_EQ(adds_for_use(pages[0], 6 * kPage), 0);
  EXPECT_EQ(adds_for_use(pages[4], 6 * kPage), 0);
  EXPECT_EQ(adds_for_use(pages[3], 4 * kPage), 1);  // across both: neither holds it
  EXPECT_EQ(domain_.live(), 3U);
  EXPECT_EQ(adds_for_use(pages[0], 10 * kPage), 1);  // holds all three
  EXPECT_EQ(domain_.live(), 1U);
  for (size_t page = 0; page < 10; ++page) EXPECT_EQ(adds_for_use(pages[page], kPage), 0);
}

TEST_F(RegistrarTest, WhatIsReplacedInUseStaysUntilReleased) {
  START_WITH_CACHE();
  const Pages pages(4);
  const Registration* const small = acquire(pages[1], kPage);
  use(pages[0], 4 * kPage);
  EXPECT_TRUE(domain_.of(small).contains(pages[1], kPage));
  registrar_->release(small);
  EXPECT_EQ(domain_.live(), 1U);
  EXPECT_EQ(adds_for_use(pages[1], kPage), 0);
}

TEST_F(RegistrarTest, LeastRecentlyUsedAreEvicted) {
  RegistrarOptions options;
  options.cache_bytes = 4 * kPage;
  START_WITH_CACHE(options);
  const Pages pages(20);
  for (const size_t page : {0, 2, 4, 6}) use(pages[page], kPage);
  use(pages[0], kPage);                         // now 2 is the oldest
  EXPECT_EQ(adds_for_use(pages[8], kPage), 1);  // 2 goes
  EXPECT_EQ(domain_.live_bytes(), 4 * kPage);
  EXPECT_EQ(adds_for_use(pages[0], kPage), 0);
  EXPECT_EQ(adds_for_use(pages[2], kPage), 1);  // 4 goes
  EXPECT_EQ(adds_for_use(pages[6], kPage), 0);
  EXPECT_EQ(adds_for_use(pages[10], 5 * kPage), 1);  // more than the limit: it goes, and all others
  EXPECT_EQ(domain_.live_bytes(), 0U);
}

TEST_F(RegistrarTest, EntriesAreLimitedToo) {
  RegistrarOptions options;
  options.cache_entries = 3;
  START_WITH_CACHE(options);
  const Pages pages(20);
  for (size_t page = 0; page < 20; page += 2) use(pages[page], kPage);
  EXPECT_EQ(domain_.live(), 3U);
}

TEST_F(RegistrarTest, WhatIsInUseIsNotEvicted) {
  RegistrarOptions options;
  options.cache_bytes = 2 * kPage;
  START_WITH_CACHE(options);
  const Pages pages(20);
  std::vector<const Registration*> used;
  for (size_t page = 0; page < 10; page += 2) used.push_back(acquire(pages[page], kPage));
  for (size_t page = 10; page < 20; page += 2) use(pages[page], kPage);
  for (const Registration* registration : used) EXPECT_NE(domain_.of(registration).begin, nullptr);
  EXPECT_EQ(domain_.live(), 7U);
  for (const Registration* registration : used) registrar_->release(registration);
  EXPECT_EQ(domain_.live(), 2U);
}

TEST_F(RegistrarTest, OutOfResourcesEvictsAndTriesAgain) {
  START_WITH_CACHE();
  domain_.limit_bytes = 8 * kPage;
  const Pages pages(40);
  for (size_t page = 0; page < 16; page += 2) use(pages[page], kPage);  // eight, idle
  EXPECT_EQ(adds_for_use(pages[20], kPage), 1);
  EXPECT_EQ(domain_.live_bytes(), 8 * kPage);
  const int tries = domain_.tries;
  const Registration* const large = acquire(pages[22], 6 * kPage);
  ASSERT_NE(large, nullptr);
  EXPECT_LE(domain_.tries - tries, 2);  // room for it is made at once
  EXPECT_EQ(domain_.live_bytes(), 8 * kPage);

  Status why;
  EXPECT_EQ(registrar_->acquire(pages[30], 3 * kPage, true, &why), nullptr);  // not even without all idle ones
  EXPECT_EQ(why.code(), Code::out_of_resources);
  EXPECT_EQ(why.message(), "more than may be locked");
  EXPECT_EQ(domain_.live_bytes(), 6 * kPage);
  use(pages[30], 2 * kPage);
  EXPECT_TRUE(registrar_->add(pages[0], 2 * kPage).ok());  // likewise: the idle entry goes
  EXPECT_EQ(registrar_->add(pages[4], kPage).code(), Code::out_of_resources);
  registrar_->release(large);
}

// What goes to make room may overlap what room is made for: that is still watched.
TEST_F(RegistrarTest, EvictedOverlapIsStillWatched) {
  START_WITH_CACHE();
  domain_.limit_bytes = 6 * kPage;
  const Pages pages(10);
  use(pages[0], 4 * kPage);
  use(pages[2], 4 * kPage);
  EXPECT_EQ(domain_.live(), 1U);
  pages.map(2, 1);
  EXPECT_EQ(adds_for_use(pages[2], 4 * kPage), 1);
}

// Evicting an entry leaves watched what another one needs.
TEST_F(RegistrarTest, OverlapOfTheEvictedIsStillWatched) {
  RegistrarOptions options;
  options.cache_bytes = 9 * kPage;
  START_WITH_CACHE(options);
  const Pages pages(20);
  use(pages[0], 4 * kPage);
  use(pages[2], 4 * kPage);
  use(pages[10], 4 * kPage);  // the first goes
  EXPECT_EQ(domain_.live(), 2U);
  pages.map(3, 1);
  EXPECT_EQ(adds_for_use(pages[2], 4 * kPage), 1);
}

TEST_F(RegistrarTest, ReadOnlyMemoryIsForSending) {
  for (const bool cache : {true, false}) {
    RegistrarOptions options;
    options.cache = cache;
    start(options);
    const Pages pages(4);
    domain_.read_only = {pages[0], pages[2], false, {}};
    Status why;
    EXPECT_EQ(registrar_->acquire(pages[0], kPage, true, &why), nullptr);
    EXPECT_EQ(why.code(), Code::invalid_argument);
    const Registration* const registration = acquire(pages[0], 2 * kPage, false);
    ASSERT_NE(registration, nullptr);
    EXPECT_FALSE(registration->is_writable);
    registrar_->release(registration);
    EXPECT_EQ(adds_for_use(pages[1], kPage, false), registrar_->has_cache() ? 0 : 1);
    EXPECT_EQ(registrar_->acquire(pages[0], kPage, true, nullptr), nullptr);
    const Registration* const other = acquire(pages[2], kPage, false);
    ASSERT_NE(other, nullptr);
    EXPECT_TRUE(other->is_writable);  // where it can be
    registrar_->release(other);
    EXPECT_EQ(adds_for_use(pages[2], kPage, true), registrar_->has_cache() ? 0 : 1);
    domain_.read_only = {};
    EXPECT_EQ(adds_for_use(pages[1], kPage, true), 1);  // made writable meanwhile
    EXPECT_EQ(adds_for_use(pages[1], kPage, true), registrar_->has_cache() ? 0 : 1);
    registrar_.reset();
  }
}

TEST_F(RegistrarTest, HitsAllocateNothing) {
  start();
  const Pages pages(8);
  ASSERT_TRUE(registrar_->add(pages[0], 2 * kPage).ok());
  const bool has_cache = registrar_->has_cache();
  if (has_cache) use(pages[4], 2 * kPage);
  const uint64_t before = tutti_test::allocations_of_this_thread();
  for (int i = 0; i < 100; ++i) {
    registrar_->release(registrar_->acquire(pages[0] + i, kPage, true, nullptr));
    if (!has_cache) continue;
    const Registration* const first = registrar_->acquire(pages[4] + i, kPage, true, nullptr);
    const Registration* const second = registrar_->acquire(pages[4], kPage, false, nullptr);
    registrar_->release(first);
    registrar_->release(second);
  }
  EXPECT_EQ(tutti_test::allocations_of_this_thread() - before, 0U);
  EXPECT_EQ(domain_.adds, has_cache ? 2 : 1);
}

// Its pages can vanish without an event when the file is truncated.
TEST_F(RegistrarTest, SharedAndFileMemoryIsNotCached) {
  START_WITH_CACHE();
  const int fd = memfd_create("registrar_test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(2 * kPage)), 0);
  const int file = memfd_create("registrar_test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(2 * kPage)), 0);
  const Pages shared(2, MAP_SHARED, fd);
  const Pages shared_anonymous(2, MAP_SHARED | MAP_ANONYMOUS);
  const Pages copied(2, MAP_PRIVATE, file);
  std::memset(shared[0], 1, kPage);  // one page that is there, one that is not yet
  std::memset(copied[0], 1, kPage);
  for (const Pages* pages : {&shared, &shared_anonymous, &copied}) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(adds_for_use((*pages)[0], 2 * kPage), 1);
    EXPECT_EQ(domain_.live(), 0U);
    EXPECT_EQ((*pages)[0][0], pages == &shared_anonymous ? std::byte{0} : std::byte{1});
    EXPECT_EQ((*pages)[1][0], std::byte{0});
  }
  close(fd);
  close(file);
}

TEST_F(RegistrarTest, DestroyedWhileInUse) {
  start();
  const Pages pages(20);
  ASSERT_TRUE(registrar_->add(pages[0], kPage).ok());
  acquire(pages[0], kPage);
  acquire(pages[2], kPage);
  acquire(pages[4], kPage);
  pages.map(4, 1);
  acquire(pages[4], kPage);
  use(pages[6], kPage);
  registrar_.reset();
  EXPECT_EQ(domain_.live(), 0U);
  EXPECT_EQ(domain_.removes, domain_.adds);
}

// Memory that changes. After the call that changed it has returned, no acquire may find it.

TEST_F(RegistrarTest, NewMemoryAtTheSameAddress) {
  START_WITH_CACHE();
  const Pages pages(4);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(adds_for_use(pages[0], 4 * kPage), 1);
    EXPECT_EQ(adds_for_use(pages[0], 4 * kPage), 0);
    if (i % 2 == 0) pages.unmap(0, 4);
    pages.map(0, 4);
  }
  EXPECT_EQ(domain_.live(), 1U);
}

TEST_F(RegistrarTest, UnmappedByAnotherThread) {
  START_WITH_CACHE();
  const Pages pages(4);
  std::atomic<int> round{0};  // odd: the other thread's turn
  constexpr int kRounds = 400;
  std::thread other([&] {
    for (int i = 1; i < kRounds; i += 2) {
      while (round.load(std::memory_order_acquire) != i) std::this_thread::yield();
      pages.unmap(1, 1);
      pages.map(1, 1);
      round.store(i + 1, std::memory_order_release);  // pairs with the loads of both threads, as the other store does
    }
  });
  int stale = 0;
  for (int i = 0; i < kRounds; i += 2) {
    while (round.load(std::memory_order_acquire) != i) std::this_thread::yield();
    stale += adds_for_use(pages[0], 4 * kPage) == 0;
    round.store(i + 1, std::memory_order_release);
  }
  other.join();
  EXPECT_EQ(stale, 0);
}

// The address is free while munmap still waits for its event to be read: a second thread can have it already.
TEST_F(RegistrarTest, MappedWhileAnotherThreadStillUnmaps) {
  START_WITH_CACHE();
  const Pages pages(4);
  std::atomic<int> round{0};
  constexpr int kRounds = 300;
  std::thread other([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round.load(std::memory_order_acquire) != i) std::this_thread::yield();
      munmap(pages[0], 4 * kPage);
    }
  });
  int stale = 0;
  for (int i = 1; i <= kRounds; ++i) {
    use(pages[0], 4 * kPage);
    round.store(i, std::memory_order_release);  // pairs with the load above
    const auto is_free = [&] {
      return mmap(pages[0], 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                  0) != MAP_FAILED;
    };
    while (!is_free()) std::this_thread::yield();
    stale += adds_for_use(pages[0], 4 * kPage) == 0;
  }
  other.join();
  EXPECT_EQ(stale, 0);
}

TEST_F(RegistrarTest, UnmappedInTheMiddle) {
  START_WITH_CACHE();
  const Pages pages(10);
  use(pages[0], 8 * kPage);
  pages.unmap(3, 1);
  EXPECT_EQ(adds_for_use(pages[0], 3 * kPage), 1);
  EXPECT_EQ(adds_for_use(pages[4], 4 * kPage), 1);
  EXPECT_EQ(domain_.live(), 2U);
  pages.map(5, 1);  // what was registered anew is watched anew
  EXPECT_EQ(adds_for_use(pages[0], 3 * kPage), 0);
  EXPECT_EQ(adds_for_use(pages[4], 4 * kPage), 1);
}

TEST_F(RegistrarTest, GivenBackToTheKernel) {
  START_WITH_CACHE();
  const Pages pages(4);
  for (const int advice : {MADV_DONTNEED, MADV_FREE}) {
    use(pages[0], 4 * kPage);
    ASSERT_EQ(madvise(pages[2], kPage, advice), 0);
    EXPECT_EQ(adds_for_use(pages[0], 4 * kPage), 1);
    EXPECT_EQ(adds_for_use(pages[0], 4 * kPage), 0);
  }
}

TEST_F(RegistrarTest, Moved) {
  START_WITH_CACHE();
  const Pages pages(4);
  const Pages target(4);
  use(pages[0], 4 * kPage);
  use(target[0], 4 * kPage);
  ASSERT_EQ(mremap(pages[1], kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target[1]), target[1]);
  EXPECT_EQ(adds_for_use(target[0], 4 * kPage), 1);
  pages.map(1, 1);
  EXPECT_EQ(adds_for_use(pages[0], 4 * kPage), 1);
  EXPECT_EQ(domain_.live(), 2U);
  // Cut at its end, and grown again.
  ASSERT_EQ(mremap(pages[0], 4 * kPage, 2 * kPage, 0), static_cast<void*>(pages[0]));
  pages.map(2, 2);
  EXPECT_EQ(adds_for_use(pages[0], 4 * kPage), 1);
}

// Where nothing is cached any more, nothing is watched: another watcher may have it.
TEST_F(RegistrarTest, MovedGivenBackOrEvictedIsNotWatched) {
  RegistrarOptions options;
  options.cache_bytes = 4 * kPage;
  START_WITH_CACHE(options);
  Registrar second(domain_, RegistrarOptions{});
  const Pages pages(20);
  const Pages target(4);
  const auto is_cached_by_second = [&](const std::byte* memory) {
    for (int i = 0; i < 2; ++i) second.release(second.acquire(memory, kPage, true, nullptr));
    const int before = domain_.adds;
    second.release(second.acquire(memory, kPage, true, nullptr));
    return domain_.adds == before;
  };
  use(pages[0], 4 * kPage);
  ASSERT_EQ(mremap(pages[1], kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target[1]), target[1]);
  use(pages[4], kPage);
  EXPECT_TRUE(is_cached_by_second(target[1]));
  EXPECT_TRUE(is_cached_by_second(pages[0]));
  EXPECT_FALSE(is_cached_by_second(pages[4]));
  ASSERT_EQ(madvise(pages[4], kPage, MADV_DONTNEED), 0);
  use(pages[6], kPage);
  EXPECT_TRUE(is_cached_by_second(pages[4]));
  use(pages[8], 4 * kPage);
  EXPECT_TRUE(is_cached_by_second(pages[6]));
}

TEST_F(RegistrarTest, UnmappedWhileInUse) {
  START_WITH_CACHE();
  const Pages pages(4);
  const Registration* const old = acquire(pages[0], 4 * kPage);
  pages.map(0, 1);
  const Registration* const fresh = acquire(pages[0], 4 * kPage);
  EXPECT_NE(fresh, old);
  EXPECT_NE(domain_.of(old).begin, nullptr);
  registrar_->release(old);
  EXPECT_EQ(domain_.live(), 1U);
  registrar_->release(fresh);
  EXPECT_EQ(domain_.live(), 1U);
}

// More events than there is room to write them down.
TEST_F(RegistrarTest, ManyEventsAtOnce) {
  START_WITH_CACHE();
  constexpr size_t kCount = 1000;
  const Pages pages(2 * kCount);
  for (size_t i = 0; i < kCount; ++i) use(pages[2 * i], kPage);
  for (size_t i = 0; i < kCount; i += 2) pages.map(2 * i, 1);
  for (size_t i = 0; i < kCount; i += 2) EXPECT_EQ(adds_for_use(pages[2 * i], kPage), 1);
}

// Children of a fork.

int exit_code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// It has no thread that reads events, so it must not wait for one; and what it does is not its parent's concern.
TEST_F(RegistrarTest, ChildUnmaps) {
  START_WITH_CACHE();
  const Pages pages(4);
  use(pages[0], 4 * kPage);
  const Registration* const used = acquire(pages[0], kPage);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    madvise(pages[0], kPage, MADV_DONTNEED);
    pages.unmap(1, 2);
    pages.map(0, 4);
    registrar_.reset();
    _exit(domain_.removes == 0 ? 0 : 1);  // the registrations are the parent's
  }
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(adds_for_use(pages[0], 4 * kPage), 0);
  registrar_->release(used);
}

// A child that stays does not hold the parent's memory watched when there is nobody to read its events.
TEST_F(RegistrarTest, ChildOutlivesTheRegistrar) {
  START_WITH_CACHE();
  const Pages pages(4);
  use(pages[0], 4 * kPage);
  std::array<int, 2> pipe_fds{};
  ASSERT_EQ(pipe(pipe_fds.data()), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    close(pipe_fds[1]);
    char byte = 0;
    (void)!read(pipe_fds[0], &byte, 1);  // until the parent closes its end
    _exit(0);
  }
  close(pipe_fds[0]);
  void* const moved = mremap(pages[0], 2 * kPage, 4 * kPage, MREMAP_MAYMOVE);  // watched, and no entry's
  ASSERT_NE(moved, MAP_FAILED);
  pages.reserve(0, 2);
  registrar_.reset();
  ASSERT_EQ(munmap(moved, 4 * kPage), 0);
  close(pipe_fds[1]);
  EXPECT_EQ(exit_code_of(child), 0);
}

// Random tests.

std::mt19937_64 seeded() {
  const char* const text = std::getenv("TUTTI_TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
  std::cout << "TUTTI_TEST_SEED=" << seed << "\n";
  return std::mt19937_64(seed);
}

// Each page of an arena has a generation that grows whenever its memory is replaced. What acquire returns must have
// been registered in the generations that are now.
class Model {
 public:
  static constexpr size_t kCount = 48;

  Model(Registrar& registrar, FakeDomain& domain, std::mt19937_64& random)
      : registrar_(registrar), domain_(domain), random_(random), pages_(kCount) {
    domain_.snapshot = [this](std::byte* memory, size_t bytes) {
      const auto first = static_cast<size_t>(memory - pages_[0]) / kPage;
      const auto last = static_cast<size_t>(memory + bytes - 1 - pages_[0]) / kPage;
      return std::vector<uint64_t>(&generations_[first], &generations_[last] + 1);
    };
  }
  ~Model() {
    for (const Registration* registration : used_) registrar_.release(registration);
    domain_.snapshot = nullptr;
  }

  void step() {
    const size_t page = below(kCount);
    const size_t count = 1 + below(std::min<size_t>(kCount - page, 12));
    switch (below(10)) {
      case 0: return replace(page, count);
      case 1: return give_back(page, count);
      case 2: return move(page, std::min<size_t>(count, 4), below(kCount - 4));
      case 3: return add(page, count);
      case 4: return remove();
      case 5:
      case 6: return release(below(2 * used_.size() + 1));
      default: return acquire(page, count);
    }
  }
  size_t used() const { return used_.size(); }
  size_t added() const { return added_.size(); }

 private:
  size_t below(size_t bound) { return random_() % bound; }
  // Memory that was added must stay.
  bool is_added(size_t page, size_t count) const {
    return std::any_of(added_.begin(), added_.end(), [&](const auto& piece) {
      return piece.first < page + count && page < piece.first + piece.second;
    });
  }
  void grow(size_t page, size_t count) {
    for (size_t i = page; i < page + count; ++i) ++generations_[i];
  }
  void replace(size_t page, size_t count) {
    if (is_added(page, count)) return;
    if (below(2) == 0) pages_.unmap(page, count);
    pages_.map(page, count);
    grow(page, count);
  }
  void give_back(size_t page, size_t count) {
    if (is_added(page, count)) return;
    ASSERT_EQ(madvise(pages_[page], count * kPage, MADV_DONTNEED), 0);
    grow(page, count);
  }
  void move(size_t from, size_t count, size_t to) {
    if (is_added(from, count) || is_added(to, count) || (from < to + count && to < from + count)) return;
    for (size_t i = 0; i < count; ++i)  // page by page: one call does not cross mappings
      ASSERT_NE(mremap(pages_[from + i], kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, pages_[to + i]), MAP_FAILED);
    pages_.map(from, count);
    grow(from, count);
    grow(to, count);
  }
  void add(size_t page, size_t count) {
    const bool is_refused = is_added(page, count);
    EXPECT_EQ(registrar_.add(pages_[page], count * kPage).ok(), !is_refused);
    if (!is_refused) added_[page] = count;
  }
  void remove() {
    const size_t page = below(kCount);
    const auto it = added_.lower_bound(page);
    EXPECT_EQ(registrar_.remove(pages_[page]).ok(), it != added_.end() && it->first == page);
    if (it == added_.end()) return;
    if (it->first != page) {
      EXPECT_TRUE(registrar_.remove(pages_[it->first]).ok());
    }
    added_.erase(it);
  }
  void release(size_t index) {
    if (index >= used_.size()) return;
    EXPECT_NE(domain_.of(used_[index]).begin, nullptr) << "deregistered while in use";
    registrar_.release(used_[index]);
    used_[index] = used_.back();
    used_.pop_back();
  }
  void acquire(size_t page, size_t count) {
    const size_t skipped = below(kPage);
    std::byte* const memory = pages_[page] + skipped;
    const size_t bytes = count * kPage - skipped - (count > 1 ? below(kPage) : 0);
    const Registration* const registration = registrar_.acquire(memory, bytes, below(2) == 0, nullptr);
    ASSERT_NE(registration, nullptr);
    const Piece piece = domain_.of(registration);
    ASSERT_TRUE(piece.contains(memory, bytes));
    const size_t first = static_cast<size_t>(piece.begin - pages_[0]) / kPage;
    for (size_t i = page; i < page + count; ++i) ASSERT_EQ(piece.generations[i - first], generations_[i]) << "stale";
    if (below(4) != 0)
      registrar_.release(registration);
    else
      used_.push_back(registration);
  }

  Registrar& registrar_;
  FakeDomain& domain_;
  std::mt19937_64& random_;
  Pages pages_;
  std::array<uint64_t, kCount> generations_{};
  std::map<size_t, size_t> added_;
  std::vector<const Registration*> used_;
};

TEST_F(RegistrarTest, AsAModel) {
  std::mt19937_64 random = seeded();
  for (const bool cache : {true, false}) {
    RegistrarOptions options;
    options.cache = cache;
    options.cache_bytes = 30 * kPage;
    start(options);
    {
      Model model(*registrar_, domain_, random);
      for (int i = 0; i < 10'000 && !HasFailure(); ++i) {
        model.step();
        EXPECT_LE(domain_.live(), model.used() + model.added() + (registrar_->has_cache() ? 30 : 0));
        domain_.limit_bytes = domain_.live_bytes() + (i % 7 == 0 ? 100 : 1000) * kPage;
      }
    }
    EXPECT_LE(domain_.live_bytes(), options.cache_bytes + Model::kCount * kPage);
    registrar_.reset();
  }
}

// Nobody waits for ever: threads that map, unmap and give back memory, some of it next to what is cached.
TEST_F(RegistrarTest, AmongThreadsThatMap) {
  std::mt19937_64 random = seeded();
  RegistrarOptions options;
  options.cache_bytes = 30 * kPage;
  start(options);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Pages>> shared;
  for (int i = 0; i < 4; ++i) shared.push_back(std::make_unique<Pages>(16));
  for (size_t i = 0; i < shared.size(); ++i)
    threads.emplace_back([&stop, &pages = *shared[i], seed = random()] {
      std::mt19937_64 own(seed);
      while (!stop.load(std::memory_order_relaxed)) {
        const size_t page = own() % 16;
        pages.map(page, 1 + own() % (16 - page));
        madvise(pages[own() % 16], kPage, MADV_DONTNEED);
        std::vector<std::byte> heap(own() % (1 << 20), std::byte{1});
        const Pages unrelated(1 + own() % 16);
        std::memset(unrelated[0], 1, kPage);
      }
    });
  for (int i = 0; i < 500; ++i) {
    const Pages& pages = *shared[random() % shared.size()];
    const size_t page = random() % 16;
    use(pages[page], (1 + random() % (16 - page)) * kPage);
    std::vector<std::byte> heap(1 + random() % (1 << 18));
    use(heap.data(), heap.size());
  }
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RegistrarTest, StartsAndEndsManyTimes) {
  const Pages pages(4);
  for (int i = 0; i < 20; ++i) {
    start();
    use(pages[0], 4 * kPage);
    registrar_.reset();
    pages.unmap(0, 2);
    pages.map(0, 2);
  }
}

// Two in one process: a page has one watcher, so the second registers it for each use, and takes no events from the
// first.
TEST_F(RegistrarTest, TwoOnTheSameMemory) {
  START_WITH_CACHE();
  Registrar second(domain_, RegistrarOptions{});
  const Pages pages(4);
  use(pages[0], 4 * kPage);
  const auto adds_of_second = [&] {
    const int before = domain_.adds;
    second.release(second.acquire(pages[2], kPage, true, nullptr));
    return domain_.adds - before;
  };
  EXPECT_EQ(adds_of_second(), 1);
  EXPECT_EQ(adds_of_second(), 1);
  pages.map(2, 1);
  EXPECT_EQ(adds_for_use(pages[0], 4 * kPage), 1);
}

}  // namespace
}  // namespace tutti::internal::verbs
