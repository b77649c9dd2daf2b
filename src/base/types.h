// The element types, operators and operations, with their names: the one list that everything else reads.
#pragma once

#include <tutti/tutti.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::internal {

enum class DataType : int {
  int8 = TUTTI_INT8,
  uint8 = TUTTI_UINT8,
  int16 = TUTTI_INT16,
  uint16 = TUTTI_UINT16,
  int32 = TUTTI_INT32,
  uint32 = TUTTI_UINT32,
  int64 = TUTTI_INT64,
  uint64 = TUTTI_UINT64,
  float16 = TUTTI_FLOAT16,
  bfloat16 = TUTTI_BFLOAT16,
  float32 = TUTTI_FLOAT32,
  float64 = TUTTI_FLOAT64,
};
inline constexpr int kDataTypeCount = 12;

enum class ReduceOp : int {
  sum = TUTTI_SUM,
  product = TUTTI_PRODUCT,
  min = TUTTI_MIN,
  max = TUTTI_MAX,
  average = TUTTI_AVERAGE,
  bit_and = TUTTI_BIT_AND,
  bit_or = TUTTI_BIT_OR,
  bit_xor = TUTTI_BIT_XOR,
};
inline constexpr int kReduceOpCount = 8;

enum class Operation : uint8_t {
  barrier,
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  scatter,
  gather,
  all_gather,
  all_to_all,
  send,
  recv,
};
inline constexpr int kOperationCount = 11;

// What a call does, as all ranks must agree on it.
struct Signature {
  Operation operation{};
  DataType type{};
  ReduceOp op{};      // sum where the operation does not reduce
  int32_t root = -1;  // -1 where the operation has none
  uint64_t count = 0;

  bool operator==(const Signature&) const = default;
};

constexpr bool is_float(DataType type) { return type >= DataType::float16; }
constexpr bool is_bitwise(ReduceOp op) { return op >= ReduceOp::bit_and; }

// Bytes of one element.
constexpr size_t type_bytes(DataType type) {
  constexpr uint8_t kBytes[kDataTypeCount] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return kBytes[static_cast<size_t>(type)];
}

// Whether the operator exists for the type: bitwise operators are for integers.
constexpr bool is_defined(ReduceOp op, DataType type) { return !(is_bitwise(op) && is_float(type)); }

constexpr bool is_rooted(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce || operation == Operation::scatter ||
         operation == Operation::gather;
}
constexpr bool is_reducing(Operation operation) {
  return operation == Operation::reduce || operation == Operation::all_reduce || operation == Operation::reduce_scatter;
}
constexpr bool is_pairwise(Operation operation) { return operation == Operation::send || operation == Operation::recv; }

const char* name(DataType type);
const char* name(ReduceOp op);
const char* name(Operation operation);

std::optional<DataType> data_type_named(std::string_view name);
std::optional<ReduceOp> reduce_op_named(std::string_view name);
std::optional<Operation> operation_named(std::string_view name);

// "all_reduce(count 1024, float32, sum)", for messages.
std::string to_string(const Signature& signature);

}  // namespace tutti::internal
