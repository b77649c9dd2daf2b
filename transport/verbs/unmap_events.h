// Tells which watched memory stopped being what it was: unmapped, replaced, moved, or its pages given back to the
// kernel. From userfaultfd, whose page faults are never asked for: nothing is write-protected, so no access ever waits.
//
// Why nothing stale is used. Whoever changes watched memory is kept in its system call (munmap, mmap over it, mremap,
// madvise, brk) until the event has been *read*. The events' thread raises `pending_` before it reads, and keeps the
// mutex from before that until it has noted what it read. So when the system call has returned, the flag is up:
// whoever looks at memory after that sees the flag, waits for the mutex in `take`, and gets the event.
//
// But while munmap still waits, its address can already belong to a new mapping of another thread, and nothing in user
// space knows yet. The kernel does: it counts such calls (mmap_changing in fs/userfaultfd.c) from before the address is
// free until the event has been read, and answers EAGAIN to some requests meanwhile. `settle` makes such a request: who
// has settled, and then sees no flag, knows that memory is what it was when it was watched. (Before Linux 5.15 it is a
// flag, not a count: there the end of one such call can hide another.)
//
// Why nobody hangs. Between an event and its reading, any lock of the program may be held by the thread that waits,
// the allocator's too. So the events' thread allocates and frees nothing and takes no lock but the mutex, and with the
// mutex held, nobody does either. As its last act it closes the descriptor, which lets everyone go; children of a
// fork, who would keep it open, close it (src/base/fork).
//
// All functions: owner's thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

struct uffd_msg;

namespace tutti::internal::verbs {

struct MemoryRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  uintptr_t bytes() const { return end - begin; }
  bool contains(MemoryRange other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(MemoryRange other) const { return begin < other.end && other.begin < end; }
};

class UnmapEvents {
 public:
  struct Event {
    MemoryRange range;
    bool is_mapped = false;  // there is memory, perhaps watched: its pages were given back, or it was moved to here
  };
  static constexpr size_t kMostEvents = 64;
  using Events = std::array<Event, kMostEvents>;

  // Unmaps, moves and gives back pages of its own before it promises anything. Errors: unsupported (with the reason),
  // out_of_resources (no thread or descriptor).
  static Result<std::unique_ptr<UnmapEvents>> start();
  ~UnmapEvents();

  enum class Watch {
    refused,     // of another kind, not there, or watched by another userfaultfd, which must not be unwatched
    unreliable,  // watched, but its pages can vanish without an event: shared memory, when somebody truncates it
    reliable,    // private anonymous memory
  };
  // Whole pages, which may be watched already.
  Watch watch(MemoryRange range);
  void unwatch(MemoryRange range);

  // Whether no watched memory is just being changed; waits a little for that. One system call. Then `has_any` knows of
  // every change of memory that the caller may use.
  bool settle() const;
  // Whether there is something to take. One load.
  bool has_any() const {
    return pending_.load(std::memory_order_acquire);  // pairs with read_events: see above
  }
  // Moves what happened since the last time to the front of `events`: how many. An event may say more than happened.
  size_t take(Events& events);

 private:
  explicit UnmapEvents(int userfault_fd);  // owns it

  Status start_reading();
  Status self_test();
  Status test_settle();
  bool sees(MemoryRange range);
  bool is_private(uintptr_t page) const;
  bool is_changing() const;

  void run();          // the events' thread
  void read_events();  // likewise, with all below
  void note(const uffd_msg& message);
  void note(Event event);

  const size_t page_bytes_;
  const uint32_t epoch_;    // of the process: a child of a fork has no such thread
  const int userfault_fd_;  // closed by the thread
  UniqueFd stop_fd_;
  std::thread thread_;
  std::mutex mutex_;
  std::atomic<bool> pending_{false};  // written under the mutex
  Events noted_{};                    // under the mutex
  size_t noted_count_ = 0;            // under the mutex
};

}  // namespace tutti::internal::verbs
