#include "src/core/call.h"

#include <fmt/core.h>

#include <cstdint>

namespace tutti::internal {
namespace {

// In which multiples of `count` a rank reads and writes.
struct Blocks {
  int input = 0;
  int output = 0;
};

Blocks blocks_of(const Signature& signature, int rank, int size) {
  const bool is_root = rank == signature.root;
  switch (signature.operation) {
    case Operation::barrier: return {0, 0};
    case Operation::broadcast: return {1, 1};
    case Operation::reduce: return {1, is_root ? 1 : 0};
    case Operation::all_reduce: return {1, 1};
    case Operation::reduce_scatter: return {size, 1};
    case Operation::scatter: return {is_root ? size : 0, 1};
    case Operation::gather: return {1, is_root ? size : 0};
    case Operation::all_gather: return {1, size};
    case Operation::all_to_all: return {size, size};
    case Operation::send: return {1, 0};
    case Operation::recv: return {0, 1};
  }
  return {0, 0};
}

Status invalid(const Signature& signature, const std::string& what) {
  return Status(Code::invalid_argument, fmt::format("{}: {}", name(signature.operation), what));
}

Status check_values(const Call& call, int rank, int size) {
  const Signature& s = call.signature;
  if (static_cast<unsigned>(s.type) >= kDataTypeCount)
    return invalid(s, fmt::format("type {} is none of tutti_type (0 to {})", int(s.type), kDataTypeCount - 1));
  if (static_cast<unsigned>(s.op) >= kReduceOpCount)
    return invalid(s, fmt::format("operator {} is none of tutti_op (0 to {})", int(s.op), kReduceOpCount - 1));
  if (is_reducing(s.operation) && !is_defined(s.op, s.type))
    return invalid(s, fmt::format("operator {} does not exist for type {}", name(s.op), name(s.type)));
  if (is_rooted(s.operation) && (s.root < 0 || s.root >= size))
    return invalid(s, fmt::format("root {} is not a rank of this group (0 to {})", s.root, size - 1));
  if (call.timeout_us < 0) return invalid(s, fmt::format("timeout {} us is negative", call.timeout_us));
  if (is_pairwise(s.operation)) {
    if (call.peer < 0 || call.peer >= size)
      return invalid(s, fmt::format("peer {} is not a rank of this group (0 to {})", call.peer, size - 1));
    if (call.peer == rank) return invalid(s, fmt::format("peer {} is this rank itself", call.peer));
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(s.count, type_bytes(s.type) * static_cast<uint64_t>(size), &bytes) || bytes >> 63)
    return invalid(
        s, fmt::format("count {} of {} on {} ranks is more than an address space", s.count, name(s.type), size));
  return {};
}

Status check_present(const Signature& s, const char* side, const Memory& memory, int blocks) {
  if (blocks == 0 || s.count == 0) return {};
  if (!memory.is_list)
    return memory.buffer() ? Status() : invalid(s, fmt::format("{} is NULL and count is {}", side, s.count));
  if (!memory.pieces()) return invalid(s, fmt::format("the list of {} pieces is NULL", side));
  for (int i = 0; i < blocks; ++i)
    if (!memory.pieces()[i]) return invalid(s, fmt::format("{} piece {} is NULL and count is {}", side, i, s.count));
  return {};
}

bool overlap(uintptr_t a, uint64_t a_bytes, uintptr_t b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// Block `i` of blocks of `bytes` bytes each.
uintptr_t block_address(const Memory& memory, int i, uint64_t bytes) {
  return memory.is_list ? reinterpret_cast<uintptr_t>(memory.pieces()[i])
                        : reinterpret_cast<uintptr_t>(memory.buffer()) + static_cast<uint64_t>(i) * bytes;
}

// Only whole buffers can be in place; pieces of lists must be apart.
Status check_overlap(const Signature& s, const Memory& input, const Memory& output, Blocks blocks, int rank,
                     bool& in_place) {
  const uint64_t bytes = s.count * type_bytes(s.type);
  if (bytes == 0 || blocks.input == 0 || blocks.output == 0) return {};
  if (!input.is_list && !output.is_list) {
    const auto in = reinterpret_cast<uintptr_t>(input.buffer()), out = reinterpret_cast<uintptr_t>(output.buffer());
    const uint64_t shift = blocks.input == blocks.output ? 0 : static_cast<uint64_t>(rank) * bytes;
    in_place = blocks.input > blocks.output ? out == in + shift : in == out + shift;
    if (in_place || !overlap(in, bytes * blocks.input, out, bytes * blocks.output)) return {};
    return invalid(s, fmt::format("input and output overlap by an offset of {} bytes; in place needs {} + {} bytes",
                                  static_cast<int64_t>(out - in),
                                  blocks.input > blocks.output ? "output = input" : "input = output", shift));
  }
  for (int i = 0; i < blocks.input; ++i)
    for (int o = 0; o < blocks.output; ++o)
      if (overlap(block_address(input, i, bytes), bytes, block_address(output, o, bytes), bytes))
        return invalid(
            s,
            fmt::format("input piece {} and output piece {} overlap; lists of pieces cannot be used in place", i, o));
  return {};
}

}  // namespace

Status check_call(Call& call, int rank, int size, bool& in_place) {
  TUTTI_RETURN_IF_ERROR(check_values(call, rank, size));
  const Signature& signature = call.signature;
  const Blocks blocks = blocks_of(signature, rank, size);
  TUTTI_RETURN_IF_ERROR(check_present(signature, "input", call.input, blocks.input));
  TUTTI_RETURN_IF_ERROR(check_present(signature, "output", call.output, blocks.output));
  if (!blocks.input) call.input = {};
  if (!blocks.output) call.output = {};
  in_place = signature.operation == Operation::broadcast;
  return in_place ? Status() : check_overlap(signature, call.input, call.output, blocks, rank, in_place);
}

}  // namespace tutti::internal
