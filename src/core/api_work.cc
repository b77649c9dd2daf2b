#include "src/core/api_work.h"

namespace tutti::internal {
namespace {

using WorkSlot = HandleTable<PendingWork>::Slot;

template <class Body>
tutti_status with_work(const tutti_work* handle, Body&& body) noexcept {
  return guarded([&] { return with(work_handles(), "work", handle, body); });
}

// Gives a work that is done back to its plan, and takes its handle out of use.
void give_back(PendingWork& pending, WorkSlot& slot, uintptr_t handle) {
  HandleTable<PendingWork>::erase(slot);
  pending.group->recycle(*pending.work);
  pending.group->work_handles.erase(handle);
  delete &pending;
}

Status wait_for(PendingWork& pending, Locked& lock, int64_t timeout_us, int* done) {
  const bool ended = pending.group->context().wait(*pending.work, lock, timeout_us);
  if (done) *done = ended;
  return ended ? pending.work->status : Status();
}

}  // namespace

Status start_async(Group& group, const Call& call, tutti_work** handle) {
  if (!handle) return Status(Code::invalid_argument, "work: the place for the handle is NULL");
  Work* work = nullptr;
  TUTTI_RETURN_IF_ERROR(group.start(call, work));
  auto pending = std::make_unique<PendingWork>(PendingWork{&group, work});
  const uintptr_t number = work_handles().insert(pending.get(), group.context().lock());
  if (number == 0) {
    Status full(Code::out_of_resources, "too many operations are under way: their handles were not given back");
    group.fail(full, true);
    group.recycle(*work);
    return full;
  }
  static_cast<void>(pending.release());  // the table has it now
  group.work_handles.insert(number);
  *handle = reinterpret_cast<tutti_work*>(number);
  return {};
}

void drop_works(Group& group, Locked& lock) {
  while (!group.work_handles.empty()) {
    const uintptr_t handle = *group.work_handles.begin();
    WorkSlot& slot = *work_handles().find(handle);
    group.context().wait_until([&] { return slot.users == 0; }, lock);
    give_back(*slot.object, slot, handle);
    work_handles().recycle(handle);
  }
}

}  // namespace tutti::internal

using namespace tutti::internal;

tutti_status tutti_work_wait(tutti_work* work) {
  return with_work(work, [](PendingWork& pending, Locked& lock, auto&) {
    return wait_for(pending, lock, Deadline::kNever, nullptr);
  });
}

tutti_status tutti_work_wait_for(tutti_work* work, int64_t timeout_us, int* done) {
  return with_work(work, [&](PendingWork& pending, Locked& lock, auto&) {
    if (timeout_us < 0)
      return Status(Code::invalid_argument, fmt::format("wait_for: timeout {} us is negative", timeout_us));
    return wait_for(pending, lock, timeout_us, done);
  });
}

tutti_status tutti_work_test(tutti_work* work, int* done) { return tutti_work_wait_for(work, 0, done); }

tutti_status tutti_work_free(tutti_work* work) {
  if (!work) return TUTTI_OK;
  return with_work(work, [&](PendingWork& pending, Locked& lock, WorkSlot& slot) {
    pending.group->context().wait(*pending.work, lock, Deadline::kNever);
    if (slot.users > 1)
      return Status(Code::invalid_argument, "the work is given back while another thread waits for it");
    give_back(pending, slot, number_of(work));
    return Status();
  });
}
