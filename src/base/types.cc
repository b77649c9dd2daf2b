#include "src/base/types.h"

#include <array>

namespace tutti::internal {
namespace {

constexpr std::array<const char*, kDataTypeCount> kTypes{"int8",    "uint8",    "int16",   "uint16",
                                                         "int32",   "uint32",   "int64",   "uint64",
                                                         "float16", "bfloat16", "float32", "float64"};

constexpr std::array<const char*, kReduceOpCount> kOps{"sum",     "product", "min",    "max",
                                                       "average", "bit_and", "bit_or", "bit_xor"};

constexpr std::array<const char*, kOperationCount> kOperations{"barrier",        "broadcast", "reduce", "all_reduce",
                                                               "reduce_scatter", "scatter",   "gather", "all_gather",
                                                               "all_to_all",     "send",      "recv"};

// The enumerator of E that is called `wanted`, by the names of all `count` of them.
template <class E>
std::optional<E> named(std::string_view wanted, int count) {
  for (int i = 0; i < count; ++i)
    if (wanted == name(static_cast<E>(i))) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace

const char* name(DataType type) { return kTypes[static_cast<size_t>(type)]; }
const char* name(ReduceOp op) { return kOps[static_cast<size_t>(op)]; }
const char* name(Operation operation) { return kOperations[static_cast<size_t>(operation)]; }

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
