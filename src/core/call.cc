#include "src/core/call.h"

#include <fmt/core.h>

#include <cstdint>
#include <limits>

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
  if (s.operation == Operation::send || s.operation == Operation::recv) {
    if (call.peer < 0 || call.peer >= size)
      return invalid(s, fmt::format("peer {} is not a rank of this group (0 to {})", call.peer, size - 1));
    if (call.peer == rank) return invalid(s, fmt::format("peer {} is this rank itself", call.peer));
  }
  const uint64_t most = std::numeric_limits<int64_t>::max() / type_bytes(s.type) / static_cast<uint64_t>(size);
  if (s.count > most)
    return invalid(
        s, fmt::format("count {} of {} on {} ranks is more than an address space", s.count, name(s.type), size));
  return {};
}

Status check_present(const Signature& s, const char* side, const Memory& memory, int blocks) {
  if (blocks == 0 || s.count == 0) return {};
  if (!memory.is_list)
    return memory.buffer ? Status() : invalid(s, fmt::format("{} is NULL and count is {}", side, s.count));
  if (!memory.pieces) return invalid(s, fmt::format("the list of {} pieces is NULL", side));
  for (int i = 0; i < blocks; ++i)
    if (!memory.pieces[i]) return invalid(s, fmt::format("{} piece {} is NULL and count is {}", side, i, s.count));
  return {};
}

bool overlap(uintptr_t a, uint64_t a_bytes, uintptr_t b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// The piece `i` of `blocks` blocks of `bytes` bytes each.
uintptr_t block_address(const Memory& memory, int i, uint64_t bytes) {
  return memory.is_list ? reinterpret_cast<uintptr_t>(memory.pieces[i])
                        : reinterpret_cast<uintptr_t>(memory.buffer) + static_cast<uint64_t>(i) * bytes;
}

// Where in place puts the shorter side within the longer one, in blocks (see tutti.h).
int in_place_block(const Signature& s, int rank, Blocks blocks) {
  return blocks.input == blocks.output ? 0 : (s.count ? rank : 0);
}

// Pieces of a list make in place a question per piece; only whole contiguous memory may alias.
Result<bool> check_overlap(const Signature& s, const Memory& input, const Memory& output, Blocks blocks, int rank) {
  const uint64_t bytes = s.count * type_bytes(s.type);
  if (bytes == 0 || blocks.input == 0 || blocks.output == 0) return false;
  if (!input.is_list && !output.is_list) {
    const uintptr_t in = block_address(input, 0, bytes), out = block_address(output, 0, bytes);
    const uint64_t shift = static_cast<uint64_t>(in_place_block(s, rank, blocks)) * bytes;
    if (blocks.input > blocks.output ? out == in + shift : in == out + shift) return true;
    if (!overlap(in, bytes * blocks.input, out, bytes * blocks.output)) return false;
    return invalid(
        s, fmt::format("input and output overlap by an offset of {} bytes; in place needs {} at {} bytes",
                       int64_t(out - in), blocks.input > blocks.output ? "output = input" : "input = output", shift));
  }
  for (int i = 0; i < blocks.input; ++i)
    for (int o = 0; o < blocks.output; ++o)
      if (overlap(block_address(input, i, bytes), bytes, block_address(output, o, bytes), bytes))
        return invalid(
            s,
            fmt::format("input piece {} and output piece {} overlap; lists of pieces cannot be used in place", i, o));
  return false;
}

}  // namespace

uint64_t input_bytes(const Signature& s, int rank, int size) {
  return static_cast<uint64_t>(blocks_of(s, rank, size).input) * s.count * type_bytes(s.type);
}

uint64_t output_bytes(const Signature& s, int rank, int size) {
  return static_cast<uint64_t>(blocks_of(s, rank, size).output) * s.count * type_bytes(s.type);
}

Result<CheckedCall> check_call(const Call& call, int rank, int size) {
  TUTTI_RETURN_IF_ERROR(check_values(call, rank, size));
  const Blocks blocks = blocks_of(call.signature, rank, size);
  TUTTI_RETURN_IF_ERROR(check_present(call.signature, "input", call.input, blocks.input));
  TUTTI_RETURN_IF_ERROR(check_present(call.signature, "output", call.output, blocks.output));
  CheckedCall checked;
  if (blocks.input) checked.input = call.input;
  if (blocks.output) checked.output = call.output;
  auto in_place = check_overlap(call.signature, checked.input, checked.output, blocks, rank);
  if (!in_place) return in_place.status();
  checked.in_place = in_place.value();
  return checked;
}

}  // namespace tutti::internal
