// Joining and leaving, groups, memory and explanations: the entry points that are no operations.
#include <fmt/core.h>

#include <cstring>

#include "src/core/api_entry.h"
#include "src/core/api_work.h"
#include "src/core/make_groups.h"

using namespace tutti::internal;

namespace {

using GroupSlot = HandleTable<Group>::Slot;

Result<tutti_group*> handle_of(Group& group) {
  const uintptr_t number = group_handles().insert(&group, group.context().lock());
  if (number == 0) return Status(Code::out_of_resources, "too many groups are open");
  return reinterpret_cast<tutti_group*>(number);
}

Result<JoinRequest> join_request(const tutti_init_options* options) {
  JoinRequest request;
  if (!options) return request;
  if (options->struct_bytes != sizeof(tutti_init_options))
    return Status(Code::invalid_argument,
                  fmt::format("init: struct_bytes is {}, this library has {}: use TUTTI_INIT_OPTIONS",
                              options->struct_bytes, sizeof(tutti_init_options)));
  request.rank = options->rank;
  request.size = options->size;
  if (options->store) request.store = options->store;
  for (auto setting = options->settings; setting && *setting; ++setting) request.settings.emplace_back(*setting);
  return request;
}

Status join(const tutti_init_options* options, tutti_group** world) {
  if (!world) return Status(Code::invalid_argument, "init: the place for the world's handle is NULL");
  auto request = join_request(options);
  if (!request) return request.status();
  auto joined = Context::join(*request);
  if (!joined) return joined.status();
  std::unique_ptr<Context> context = std::move(*joined);
  Locked lock(context->lock());
  Membership membership;
  membership.channel = 0;
  membership.rank = context->rank();
  for (int r = 0; r < context->size(); ++r) membership.world_ranks.push_back(r);
  auto handle = handle_of(context->add_group(std::move(membership), context->config().timeout_us()));
  lock.unlock();
  if (!handle) return handle.status();
  *world = *handle;
  static_cast<void>(
      context.release());  // from now on owned by its groups: the last one to go takes it along (see leave)
  return {};
}

// Waits until nobody is inside the group and nothing runs on it, and removes it. The handle is out of use already.
void drain(Group& group, GroupSlot& slot, Locked& lock) {
  group.context().wait_until([&] { return !group.is_running() && slot.users == 1; }, lock);
  drop_works(group, lock);
}

// Calls `make` for a new group and hands its handle out.
template <class Make>
tutti_status new_group(tutti_group* parent, tutti_group** handle, Make&& make) {
  return with_group(parent, [&](Group& group, Locked& lock, GroupSlot&) -> Status {
    if (!handle) return Status(Code::invalid_argument, "the place for the new group's handle is NULL");
    Result<Group*> made = make(group, lock);
    if (!made) return made.status();
    *handle = nullptr;
    if (!*made) return {};
    auto number = handle_of(**made);
    if (!number) return number.status();
    *handle = *number;
    return {};
  });
}

}  // namespace

tutti_status tutti_init(const tutti_init_options* options, tutti_group** world) {
  return guarded([&] { return join(options, world); });
}

tutti_status tutti_group_free(tutti_group* handle) {
  if (!handle) return TUTTI_OK;
  Context* last = nullptr;
  const tutti_status status = with_group(handle, [&](Group& group, Locked& lock, GroupSlot& slot) -> Status {
    HandleTable<Group>::erase(slot);
    drain(group, slot, lock);
    Context& context = group.context();
    context.remove_group(group);
    if (context.group_count() == 0) last = &context;
    return {};
  });
  if (last) guarded([&] { return delete last, Status(); });
  return status;
}

tutti_status tutti_group_abort(tutti_group* handle, const char* reason) {
  return with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    const Status status(Code::aborted, fmt::format("the group was aborted: {}", reason ? reason : "no reason given"));
    group.context().fail_descendants(group.membership().channel, status, true);
    return {};
  });
}

int tutti_group_rank(const tutti_group* handle) {
  int rank = -1;
  with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status { return rank = group.rank(), Status(); });
  return rank;
}

int tutti_group_size(const tutti_group* handle) {
  int size = -1;
  with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status { return size = group.size(), Status(); });
  return size;
}

int tutti_group_world_rank(const tutti_group* handle, int rank) {
  int world_rank = -1;
  with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    if (rank < 0 || rank >= group.size())
      return Status(Code::invalid_argument,
                    fmt::format("{} is not a rank of the group (0 to {})", rank, group.size() - 1));
    world_rank = group.membership().world_ranks[rank];
    return {};
  });
  return world_rank;
}

tutti_status tutti_group_set_timeout(tutti_group* handle, int64_t timeout_us) {
  return with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    if (timeout_us < 0) return Status(Code::invalid_argument, fmt::format("timeout {} us is negative", timeout_us));
    group.set_timeout_us(timeout_us);
    return {};
  });
}

tutti_status tutti_subgroup(tutti_group* group, const int* ranks, size_t rank_count, tutti_group** subgroup) {
  return new_group(group, subgroup, [&](Group& parent, Locked& lock) -> Result<Group*> {
    if (!ranks && rank_count) return Status(Code::invalid_argument, "subgroup: the list of ranks is NULL");
    return make_subgroup(parent, {ranks, rank_count}, lock);
  });
}

tutti_status tutti_split(tutti_group* group, int color, int key, tutti_group** part) {
  return new_group(group, part, [&](Group& parent, Locked& lock) { return make_split(parent, color, key, lock); });
}

tutti_status tutti_dup(tutti_group* group, tutti_group** copy) {
  return new_group(group, copy, [&](Group& parent, Locked& lock) { return make_dup(parent, lock); });
}

tutti_status tutti_alloc(tutti_group* handle, size_t bytes, void** memory) {
  return with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    if (!memory) return Status(Code::invalid_argument, "alloc: the place for the address is NULL");
    if (bytes == 0) return *memory = nullptr, Status();
    auto window = group.context().transport().allocate(bytes);
    if (!window) return window.status();
    *memory = *window;
    return {};
  });
}

tutti_status tutti_free(tutti_group* handle, void* memory) {
  return with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    return memory ? group.context().transport().release(memory) : Status();
  });
}

tutti_status tutti_register(tutti_group* handle, void* memory, size_t bytes) {
  return with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    if (!memory || bytes == 0)
      return Status(Code::invalid_argument, fmt::format("register: {} bytes at {} is no memory", bytes, memory));
    return group.context().transport().register_memory(memory, bytes);
  });
}

tutti_status tutti_unregister(tutti_group* handle, void* memory) {
  return with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    return group.context().transport().unregister_memory(memory);
  });
}

tutti_status tutti_explain(tutti_group* handle, const char* operation, size_t count, tutti_type type,
                           const char** algorithm) {
  return with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    const auto named = operation_named(operation ? operation : "");
    if (!named)
      return Status(Code::invalid_argument, fmt::format("explain: '{}' is no operation; there are {}",
                                                        operation ? operation : "", operation_names()));
    if (!algorithm) return Status(Code::invalid_argument, "explain: the place for the name is NULL");
    if (static_cast<unsigned>(type) >= kDataTypeCount)
      return Status(Code::invalid_argument, fmt::format("explain: type {} is none of tutti_type", int(type)));
    *algorithm = group.choice_for(*named, count, static_cast<DataType>(type)).algorithm->name;
    return {};
  });
}

tutti_status tutti_describe(tutti_group* handle, char* text, size_t bytes, size_t* needed) {
  return with_group(handle, [&](Group& group, Locked&, GroupSlot&) -> Status {
    const std::string json = group.context().describe();
    if (needed) *needed = json.size() + 1;
    if (!text || bytes == 0) return {};
    const size_t taken = std::min(bytes - 1, json.size());
    std::memcpy(text, json.data(), taken);
    text[taken] = '\0';
    return {};
  });
}
