// Shapes and shared memory of the operations: the table of tutti.h as code.
#include "algo/problem.h"

namespace tutti::internal {

Aliasing aliasing(const Problem& problem) {
  using enum Aliasing::Kind;
  const bool at_root = problem.rank == problem.root;
  const uint64_t block = static_cast<uint64_t>(problem.rank) * problem.bytes();
  // There is one buffer, and it is called output: all ranks but one write it.
  if (problem.operation == Operation::broadcast) return {input_in_output, 0};
  if (!problem.in_place) return {};
  switch (problem.operation) {
    case Operation::reduce: return at_root ? Aliasing{input_in_output, 0} : Aliasing{};
    case Operation::all_reduce:
    case Operation::all_to_all: return {input_in_output, 0};
    case Operation::gather: return at_root ? Aliasing{input_in_output, block} : Aliasing{};
    case Operation::all_gather: return {input_in_output, block};
    case Operation::scatter: return at_root ? Aliasing{output_in_input, block} : Aliasing{};
    case Operation::reduce_scatter: return {output_in_input, block};
    case Operation::barrier:
    case Operation::broadcast:
    case Operation::send:
    case Operation::recv: break;
  }
  return {};
}

uint64_t input_bytes(const Problem& problem) {
  const bool at_root = problem.rank == problem.root;
  const uint64_t all = static_cast<uint64_t>(problem.size) * problem.bytes();
  switch (problem.operation) {
    case Operation::barrier:
    case Operation::recv: return 0;
    case Operation::broadcast: return at_root ? problem.bytes() : 0;
    case Operation::reduce:
    case Operation::all_reduce:
    case Operation::gather:
    case Operation::all_gather:
    case Operation::send: return problem.bytes();
    case Operation::scatter: return at_root ? all : 0;
    case Operation::reduce_scatter:
    case Operation::all_to_all: return all;
  }
  return 0;
}

uint64_t output_bytes(const Problem& problem) {
  const bool at_root = problem.rank == problem.root;
  const uint64_t all = static_cast<uint64_t>(problem.size) * problem.bytes();
  switch (problem.operation) {
    case Operation::barrier:
    case Operation::send: return 0;
    case Operation::broadcast:
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::scatter:
    case Operation::recv: return problem.bytes();
    case Operation::reduce: return at_root ? problem.bytes() : 0;
    case Operation::gather: return at_root ? all : 0;
    case Operation::all_gather:
    case Operation::all_to_all: return all;
  }
  return 0;
}

}  // namespace tutti::internal
