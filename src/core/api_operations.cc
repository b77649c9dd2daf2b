// The operations of tutti.h, blocking and asynchronous. Each says what its call is; two functions do the rest.
#include <fmt/core.h>

#include "src/core/api_entry.h"
#include "src/core/api_work.h"
#include "src/core/make_groups.h"

using namespace tutti::internal;

namespace {

[[gnu::cold]] Status foreign_options(const tutti_options& options) {
  return Status(Code::invalid_argument,
                fmt::format("options: struct_bytes is {}, this library has {}: use TUTTI_OPTIONS", options.struct_bytes,
                            sizeof(tutti_options)));
}

// What to do with a call: run it to its end, or start it and hand out a work.
class Run {
 public:
  explicit Run(tutti_work** work = nullptr, bool async = false) : work_(work), async_(async) {}
  static Run blocking() { return Run(); }
  static Run async(tutti_work** work) { return Run(work, true); }

  tutti_status operator()(tutti_group* group, Call call, const tutti_options* options) const {
    return with_group(group, [&](Group& object, Locked& lock, auto&) -> Status {
      if (options) {
        if (options->struct_bytes != sizeof(tutti_options)) return foreign_options(*options);
        call.timeout_us = options->timeout_us;
      }
      return async_ ? start_async(object, call, work_) : run(object, call, lock);
    });
  }

 private:
  tutti_work** work_;
  bool async_;
};

Signature plain(Operation operation, size_t count, tutti_type type) {
  return {operation, static_cast<DataType>(type), ReduceOp::sum, -1, count};
}
Signature rooted(Operation operation, size_t count, tutti_type type, int root) {
  return {operation, static_cast<DataType>(type), ReduceOp::sum, root, count};
}
Signature reducing(Operation operation, size_t count, tutti_type type, tutti_op op, int root = -1) {
  return {operation, static_cast<DataType>(type), static_cast<ReduceOp>(op), root, count};
}

Call barrier_call() { return {plain(Operation::barrier, 0, TUTTI_INT8), {}, {}}; }
Call broadcast_call(void* buffer, size_t count, tutti_type type, int root) {
  return {rooted(Operation::broadcast, count, type, root), Memory::of(buffer), Memory::of(buffer)};
}
Call reduce_call(const void* input, void* output, size_t count, tutti_type type, tutti_op op, int root) {
  return {reducing(Operation::reduce, count, type, op, root), Memory::of(input), Memory::of(output)};
}
Call all_reduce_call(const void* input, void* output, size_t count, tutti_type type, tutti_op op) {
  return {reducing(Operation::all_reduce, count, type, op), Memory::of(input), Memory::of(output)};
}
Call reduce_scatter_call(const void* input, void* output, size_t count, tutti_type type, tutti_op op) {
  return {reducing(Operation::reduce_scatter, count, type, op), Memory::of(input), Memory::of(output)};
}
Call scatter_call(Memory input, void* output, size_t count, tutti_type type, int root) {
  return {rooted(Operation::scatter, count, type, root), input, Memory::of(output)};
}
Call gather_call(const void* input, Memory output, size_t count, tutti_type type, int root) {
  return {rooted(Operation::gather, count, type, root), Memory::of(input), output};
}
Call all_gather_call(const void* input, Memory output, size_t count, tutti_type type) {
  return {plain(Operation::all_gather, count, type), Memory::of(input), output};
}
Call all_to_all_call(Memory input, Memory output, size_t count, tutti_type type) {
  return {plain(Operation::all_to_all, count, type), input, output};
}
Call send_call(const void* buffer, size_t count, tutti_type type, int to) {
  return {plain(Operation::send, count, type), Memory::of(buffer), {}, to};
}
Call recv_call(void* buffer, size_t count, tutti_type type, int from) {
  return {plain(Operation::recv, count, type), {}, Memory::of(buffer), from};
}
Memory list(const void* const* pieces) { return Memory::list(pieces); }
Memory list(void* const* pieces) { return Memory::list(const_cast<const void* const*>(pieces)); }

}  // namespace

tutti_status tutti_barrier(tutti_group* group, const tutti_options* options) {
  return Run::blocking()(group, barrier_call(), options);
}
tutti_status tutti_barrier_async(tutti_group* group, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, barrier_call(), options);
}

tutti_status tutti_broadcast(tutti_group* group, void* buffer, size_t count, tutti_type type, int root,
                             const tutti_options* options) {
  return Run::blocking()(group, broadcast_call(buffer, count, type, root), options);
}
tutti_status tutti_broadcast_async(tutti_group* group, void* buffer, size_t count, tutti_type type, int root,
                                   const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, broadcast_call(buffer, count, type, root), options);
}

tutti_status tutti_reduce(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                          tutti_op op, int root, const tutti_options* options) {
  return Run::blocking()(group, reduce_call(input, output, count, type, op, root), options);
}
tutti_status tutti_reduce_async(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                tutti_op op, int root, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, reduce_call(input, output, count, type, op, root), options);
}

tutti_status tutti_all_reduce(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                              tutti_op op, const tutti_options* options) {
  return Run::blocking()(group, all_reduce_call(input, output, count, type, op), options);
}
tutti_status tutti_all_reduce_async(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                    tutti_op op, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, all_reduce_call(input, output, count, type, op), options);
}

tutti_status tutti_reduce_scatter(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                  tutti_op op, const tutti_options* options) {
  return Run::blocking()(group, reduce_scatter_call(input, output, count, type, op), options);
}
tutti_status tutti_reduce_scatter_async(tutti_group* group, const void* input, void* output, size_t count,
                                        tutti_type type, tutti_op op, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, reduce_scatter_call(input, output, count, type, op), options);
}

tutti_status tutti_scatter(tutti_group* group, const void* input, void* output, size_t count, tutti_type type, int root,
                           const tutti_options* options) {
  return Run::blocking()(group, scatter_call(Memory::of(input), output, count, type, root), options);
}
tutti_status tutti_scatter_async(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                 int root, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, scatter_call(Memory::of(input), output, count, type, root), options);
}
tutti_status tutti_scatter_list(tutti_group* group, const void* const* inputs, void* output, size_t count,
                                tutti_type type, int root, const tutti_options* options) {
  return Run::blocking()(group, scatter_call(list(inputs), output, count, type, root), options);
}
tutti_status tutti_scatter_list_async(tutti_group* group, const void* const* inputs, void* output, size_t count,
                                      tutti_type type, int root, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, scatter_call(list(inputs), output, count, type, root), options);
}

tutti_status tutti_gather(tutti_group* group, const void* input, void* output, size_t count, tutti_type type, int root,
                          const tutti_options* options) {
  return Run::blocking()(group, gather_call(input, Memory::of(output), count, type, root), options);
}
tutti_status tutti_gather_async(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                int root, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, gather_call(input, Memory::of(output), count, type, root), options);
}
tutti_status tutti_gather_list(tutti_group* group, const void* input, void* const* outputs, size_t count,
                               tutti_type type, int root, const tutti_options* options) {
  return Run::blocking()(group, gather_call(input, list(outputs), count, type, root), options);
}
tutti_status tutti_gather_list_async(tutti_group* group, const void* input, void* const* outputs, size_t count,
                                     tutti_type type, int root, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, gather_call(input, list(outputs), count, type, root), options);
}

tutti_status tutti_all_gather(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                              const tutti_options* options) {
  return Run::blocking()(group, all_gather_call(input, Memory::of(output), count, type), options);
}
tutti_status tutti_all_gather_async(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                    const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, all_gather_call(input, Memory::of(output), count, type), options);
}
tutti_status tutti_all_gather_list(tutti_group* group, const void* input, void* const* outputs, size_t count,
                                   tutti_type type, const tutti_options* options) {
  return Run::blocking()(group, all_gather_call(input, list(outputs), count, type), options);
}
tutti_status tutti_all_gather_list_async(tutti_group* group, const void* input, void* const* outputs, size_t count,
                                         tutti_type type, const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, all_gather_call(input, list(outputs), count, type), options);
}

tutti_status tutti_all_to_all(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                              const tutti_options* options) {
  return Run::blocking()(group, all_to_all_call(Memory::of(input), Memory::of(output), count, type), options);
}
tutti_status tutti_all_to_all_async(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                    const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, all_to_all_call(Memory::of(input), Memory::of(output), count, type), options);
}
tutti_status tutti_all_to_all_list(tutti_group* group, const void* const* inputs, void* const* outputs, size_t count,
                                   tutti_type type, const tutti_options* options) {
  return Run::blocking()(group, all_to_all_call(list(inputs), list(outputs), count, type), options);
}
tutti_status tutti_all_to_all_list_async(tutti_group* group, const void* const* inputs, void* const* outputs,
                                         size_t count, tutti_type type, const tutti_options* options,
                                         tutti_work** work) {
  return Run::async(work)(group, all_to_all_call(list(inputs), list(outputs), count, type), options);
}

tutti_status tutti_send(tutti_group* group, const void* buffer, size_t count, tutti_type type, int to,
                        const tutti_options* options) {
  return Run::blocking()(group, send_call(buffer, count, type, to), options);
}
tutti_status tutti_send_async(tutti_group* group, const void* buffer, size_t count, tutti_type type, int to,
                              const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, send_call(buffer, count, type, to), options);
}
tutti_status tutti_recv(tutti_group* group, void* buffer, size_t count, tutti_type type, int from,
                        const tutti_options* options) {
  return Run::blocking()(group, recv_call(buffer, count, type, from), options);
}
tutti_status tutti_recv_async(tutti_group* group, void* buffer, size_t count, tutti_type type, int from,
                              const tutti_options* options, tutti_work** work) {
  return Run::async(work)(group, recv_call(buffer, count, type, from), options);
}
