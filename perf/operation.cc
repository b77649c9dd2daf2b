#include "operation.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace tutti::perf {
namespace {

constexpr std::array kOperations = {
    Operation{Kind::broadcast, "broadcast", "broadcast", false, true, false, false, BusFactor::one, "the buffer"},
    Operation{Kind::reduce, "reduce", "reduce", true, true, false, false, BusFactor::one, "each rank's input"},
    Operation{Kind::all_reduce, "all_reduce", "all_reduce", true, false, false, false, BusFactor::twice,
              "each rank's input"},
    Operation{Kind::scatter, "scatter", "scatter", false, true, true, false, BusFactor::others, "root's whole input"},
    Operation{Kind::gather, "gather", "gather", false, true, false, true, BusFactor::others, "root's whole output"},
    Operation{Kind::all_gather, "all_gather", "all_gather", false, false, false, true, BusFactor::others,
              "each rank's whole output"},
    Operation{Kind::barrier, "barrier", "barrier", false, false, false, false, BusFactor::none, "0: no sweep"},
    Operation{Kind::reduce_scatter, "reduce_scatter", "reduce_scatter", true, false, true, false, BusFactor::others,
              "each rank's whole input"},
    Operation{Kind::all_to_all, "all_to_all", "all_to_all", false, false, true, true, BusFactor::others,
              "each rank's whole input"},
    Operation{Kind::send_recv, "send_recv", "send", false, false, false, false, BusFactor::one,
              "what each rank sends to the next"},
};

// Waits for the work of a call that began with `status`.
void finish(tutti_status status, tutti_work* work, const Call& call) {
  if (status == TUTTI_OK) status = tutti_work_wait(work);
  const std::string message = status == TUTTI_OK ? "" : tutti_last_error();
  tutti_work_free(work);
  if (status != TUTTI_OK) throw std::runtime_error(std::string(call.operation->name) + ": " + message);
}

// Every rank sends to the next and receives from the one before. The send is asynchronous, since a ring of blocking
// sends may wait for itself.
void run_send_recv(tutti_group* group, const Call& call, bool async) {
  const int rank = tutti_group_rank(group);
  const int size = tutti_group_size(group);
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  tutti_work* send = nullptr;
  const tutti_status sent = tutti_send_async(group, call.input, call.count, call.type, next, nullptr, &send);
  require(sent, "send");
  if (async) {
    tutti_work* recv = nullptr;
    const tutti_status received = tutti_recv_async(group, call.output, call.count, call.type, previous, nullptr, &recv);
    finish(received, recv, call);
  } else {
    require(tutti_recv(group, call.output, call.count, call.type, previous, nullptr), "recv");
  }
  finish(sent, send, call);
}

tutti_status start(tutti_group* group, const Call& c, tutti_work** work) {
  switch (c.operation->kind) {
    case Kind::barrier: return tutti_barrier_async(group, nullptr, work);
    case Kind::broadcast: return tutti_broadcast_async(group, c.output, c.count, c.type, c.root, nullptr, work);
    case Kind::reduce:
      return tutti_reduce_async(group, c.input, c.output, c.count, c.type, c.op, c.root, nullptr, work);
    case Kind::all_reduce:
      return tutti_all_reduce_async(group, c.input, c.output, c.count, c.type, c.op, nullptr, work);
    case Kind::reduce_scatter:
      return tutti_reduce_scatter_async(group, c.input, c.output, c.count, c.type, c.op, nullptr, work);
    case Kind::scatter: return tutti_scatter_async(group, c.input, c.output, c.count, c.type, c.root, nullptr, work);
    case Kind::gather: return tutti_gather_async(group, c.input, c.output, c.count, c.type, c.root, nullptr, work);
    case Kind::all_gather: return tutti_all_gather_async(group, c.input, c.output, c.count, c.type, nullptr, work);
    case Kind::all_to_all: return tutti_all_to_all_async(group, c.input, c.output, c.count, c.type, nullptr, work);
    case Kind::send_recv: break;
  }
  return TUTTI_INTERNAL;
}

tutti_status call_blocking(tutti_group* group, const Call& c) {
  switch (c.operation->kind) {
    case Kind::barrier: return tutti_barrier(group, nullptr);
    case Kind::broadcast: return tutti_broadcast(group, c.output, c.count, c.type, c.root, nullptr);
    case Kind::reduce: return tutti_reduce(group, c.input, c.output, c.count, c.type, c.op, c.root, nullptr);
    case Kind::all_reduce: return tutti_all_reduce(group, c.input, c.output, c.count, c.type, c.op, nullptr);
    case Kind::reduce_scatter: return tutti_reduce_scatter(group, c.input, c.output, c.count, c.type, c.op, nullptr);
    case Kind::scatter: return tutti_scatter(group, c.input, c.output, c.count, c.type, c.root, nullptr);
    case Kind::gather: return tutti_gather(group, c.input, c.output, c.count, c.type, c.root, nullptr);
    case Kind::all_gather: return tutti_all_gather(group, c.input, c.output, c.count, c.type, nullptr);
    case Kind::all_to_all: return tutti_all_to_all(group, c.input, c.output, c.count, c.type, nullptr);
    case Kind::send_recv: break;
  }
  return TUTTI_INTERNAL;
}

}  // namespace

std::span<const Operation> operations() { return kOperations; }

const Operation* find_operation(const std::string& name) {
  const auto* found = std::find_if(kOperations.begin(), kOperations.end(),
                                   [&](const Operation& operation) { return name == operation.name; });
  return found == kOperations.end() ? nullptr : found;
}

double bus_factor(const Operation& operation, int ranks) {
  const double others = double(ranks - 1) / ranks;
  switch (operation.bus_factor) {
    case BusFactor::none: return 0;
    case BusFactor::one: return 1;
    case BusFactor::others: return others;
    case BusFactor::twice: return 2 * others;
  }
  return 0;
}

void require(tutti_status status, const std::string& what) {
  if (status != TUTTI_OK) throw std::runtime_error(what + ": " + tutti_last_error());
}

void run(tutti_group* group, const Call& call) {
  if (call.operation->kind == Kind::send_recv) return run_send_recv(group, call, false);
  // No string on the way of a call that succeeds: this is inside the measured time.
  const tutti_status status = call_blocking(group, call);
  if (status != TUTTI_OK) require(status, call.operation->name);
}

void run_async(tutti_group* group, const Call& call) {
  if (call.operation->kind == Kind::send_recv) return run_send_recv(group, call, true);
  tutti_work* work = nullptr;
  const tutti_status status = start(group, call, &work);
  finish(status, work, call);
}

}  // namespace tutti::perf
