#include "src/base/types.h"

#include <array>

namespace tutti::internal {
namespace {

struct TypeRow {
  const char* name;
  size_t bytes;
};
constexpr std::array<TypeRow, kDataTypeCount> kTypes{{{"int8", 1},
                                                      {"uint8", 1},
                                                      {"int16", 2},
                                                      {"uint16", 2},
                                                      {"int32", 4},
                                                      {"uint32", 4},
                                                      {"int64", 8},
                                                      {"uint64", 8},
                                                      {"float16", 2},
                                                      {"bfloat16", 2},
                                                      {"float32", 4},
                                                      {"float64", 8}}};

constexpr std::array<const char*, kReduceOpCount> kOps{"sum",     "product", "min",    "max",
                                                       "average", "bit_and", "bit_or", "bit_xor"};

struct OperationRow {
  const char* name;
  bool rooted;
  bool reducing;
};
constexpr std::array<OperationRow, kOperationCount> kOperations{{{"barrier", false, false},
                                                                 {"broadcast", true, false},
                                                                 {"reduce", true, true},
                                                                 {"all_reduce", false, true},
                                                                 {"reduce_scatter", false, true},
                                                                 {"scatter", true, false},
                                                                 {"gather", true, false},
                                                                 {"all_gather", false, false},
                                                                 {"all_to_all", false, false},
                                                                 {"send", false, false},
                                                                 {"recv", false, false}}};

const OperationRow& row(Operation operation) { return kOperations[static_cast<size_t>(operation)]; }

// The enumerator of E that is called `wanted`, by the names of all `count` of them.
template <class E>
std::optional<E> named(std::string_view wanted, int count) {
  for (int i = 0; i < count; ++i)
    if (wanted == name(static_cast<E>(i))) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace

size_t type_bytes(DataType type) { return kTypes[static_cast<size_t>(type)].bytes; }
bool is_defined(ReduceOp op, DataType type) { return !(is_bitwise(op) && is_float(type)); }
bool is_rooted(Operation operation) { return row(operation).rooted; }
bool is_reducing(Operation operation) { return row(operation).reducing; }

const char* name(DataType type) { return kTypes[static_cast<size_t>(type)].name; }
const char* name(ReduceOp op) { return kOps[static_cast<size_t>(op)]; }
const char* name(Operation operation) { return row(operation).name; }

std::optional<DataType> data_type_named(std::string_view wanted) { return named<DataType>(wanted, kDataTypeCount); }
std::optional<ReduceOp> reduce_op_named(std::string_view wanted) { return named<ReduceOp>(wanted, kReduceOpCount); }
std::optional<Operation> operation_named(std::string_view wanted) { return named<Operation>(wanted, kOperationCount); }

std::string to_string(const Signature& signature) {
  std::string text = name(signature.operation);
  if (signature.operation == Operation::barrier) return text + "()";
  text += "(count " + std::to_string(signature.count) + ", " + name(signature.type);
  if (is_reducing(signature.operation)) text += std::string(", ") + name(signature.op);
  if (is_rooted(signature.operation)) text += ", root " + std::to_string(signature.root);
  return text + ")";
}

}  // namespace tutti::internal
