#include "src/core/api_work.h"

#include <fmt/core.h>

namespace tutti::internal {
namespace {

using WorkSlot = HandleTable<Work>::Slot;

template <class Body>
tutti_status with_work(const tutti_work* handle, Body&& body) noexcept {
  return guarded([&] { return with(work_handles(), "work", handle, body); });
}

// Takes the handle of a work that is done out of use, and gives the work back to its plan.
void give_back(Work& work, WorkSlot& slot) {
  HandleTable<Work>::erase(slot);
  work.group().handed_out.erase(work);
  work.group().recycle(work);
}

Status wait_for(Work& work, Locked& lock, int64_t timeout_us, int* done) {
  const bool ended = work.group().context().wait(work, lock, timeout_us);
  if (done) *done = ended;
  return ended ? work.status : Status();
}

}  // namespace

Status start_async(Group& group, const Call& call, tutti_work** handle) {
  if (!handle) return Status(Code::invalid_argument, "work: the place for the handle is NULL");
  Work* work = nullptr;
  TUTTI_RETURN_IF_ERROR(group.start(call, work));
  work->handle = work_handles().insert(work, group.context().lock());
  if (work->handle == 0) {
    Status full(Code::out_of_resources, "too many operations are under way: their handles were not given back");
    group.fail(full, true);
    group.recycle(*work);
    return full;
  }
  group.handed_out.push_back(*work);
  *handle = reinterpret_cast<tutti_work*>(work->handle);
  return {};
}

void drop_works(Group& group, Locked& lock) {
  while (Work* const work = group.handed_out.front()) {
    const uintptr_t handle = work->handle;
    WorkSlot& slot = *work_handles().find(handle);
    group.context().wait_until([&] { return slot.users == 0; }, lock);
    if (!HandleTable<Work>::is_current(slot, handle)) continue;  // another thread has given it back meanwhile
    give_back(*work, slot);
    work_handles().recycle(handle);
  }
}

}  // namespace tutti::internal

using namespace tutti::internal;

tutti_status tutti_work_wait(tutti_work* work) {
  return with_work(
      work, [](Work& operation, Locked& lock, auto&) { return wait_for(operation, lock, Deadline::kNever, nullptr); });
}

tutti_status tutti_work_wait_for(tutti_work* work, int64_t timeout_us, int* done) {
  return with_work(work, [&](Work& operation, Locked& lock, auto&) {
    if (timeout_us < 0)
      return Status(Code::invalid_argument, fmt::format("wait_for: timeout {} us is negative", timeout_us));
    return wait_for(operation, lock, timeout_us, done);
  });
}

tutti_status tutti_work_test(tutti_work* work, int* done) { return tutti_work_wait_for(work, 0, done); }

tutti_status tutti_work_free(tutti_work* work) {
  if (!work) return TUTTI_OK;
  return with_work(work, [&](Work& operation, Locked& lock, WorkSlot& slot) {
    operation.group().context().wait(operation, lock, Deadline::kNever);
    if (slot.users > 1)
      return Status(Code::invalid_argument, "the work is given back while another thread waits for it");
    give_back(operation, slot);
    return Status();
  });
}
