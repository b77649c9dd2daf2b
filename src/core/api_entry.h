// What every C entry point does around its work: finds the object behind the handle, holds the lock, keeps exceptions
// in, and leaves the message of an error for tutti_last_error.
#pragma once

#include <mutex>
#include <new>

#include "src/base/fork.h"
#include "src/core/context.h"
#include "src/core/handle_table.h"

namespace tutti::internal {

// The text and rank of this thread's last error.
tutti_status finish(const Status& status);
void keep_last_error(const Status& status);

HandleTable<Group>& group_handles();
HandleTable<Work>& work_handles();

inline uintptr_t number_of(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

// Runs `body` with what it may throw turned into a status.
template <class Body>
tutti_status guarded(Body&& body) noexcept {
  try {
    return finish(body());
  } catch (const std::bad_alloc&) {
    return finish(Status(Code::out_of_resources, "no memory"));
  } catch (const std::exception& error) {
    return finish(Status(Code::internal, error.what()));
  }
}

// Why a handle cannot be used: it is none (any more), or was inherited through fork.
[[gnu::cold]] Status unknown_handle(const char* what, const void* handle);
[[gnu::cold]] Status inherited_handle(const char* what);

// Runs body(object, lock, slot) on the object behind a handle. A body that erases the slot has waited until nobody else
// is inside; the slot is then used again. `what`: "group" or "work", for messages.
template <class T, class Body>
Status with(HandleTable<T>& table, const char* what, const void* handle, Body&& body) {
  auto* slot = table.find(number_of(handle));
  if (!slot) return unknown_handle(what, handle);
  if (slot->epoch != process_epoch()) return inherited_handle(what);
  Locked lock(*slot->lock.load(std::memory_order_acquire));
  if (!table.is_current(*slot, number_of(handle))) return unknown_handle(what, handle);
  // Ends with the visit however the body ends, under the lock.
  struct Visit {
    decltype(slot) visited;
    explicit Visit(decltype(slot) of) : visited(of) { ++visited->users; }
    ~Visit() { --visited->users; }
  };
  bool erased = false;
  Status status;
  {
    const Visit visit(slot);
    status = body(*slot->object, lock, *slot);
    erased = !table.is_current(*slot, number_of(handle));
  }
  lock.unlock();
  if (erased) table.recycle(number_of(handle));
  return status;
}

template <class Body>
tutti_status with_group(const tutti_group* handle, Body&& body) noexcept {
  return guarded([&] { return with(group_handles(), "group", handle, body); });
}

}  // namespace tutti::internal
