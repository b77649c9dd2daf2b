// The types and operators: numbers, lengths and names agree with the public header.
#include "src/base/types.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tutti::internal {
namespace {

TEST(Types, NamesReadBackToTheirValues) {
  EXPECT_EQ(data_type_named("bfloat16"), DataType::bfloat16);
  EXPECT_EQ(reduce_op_named("bit_xor"), ReduceOp::bit_xor);
  EXPECT_EQ(operation_named("reduce_scatter"), Operation::reduce_scatter);
  std::set<std::string> names;
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(data_type_named(name(type)), type);
    names.insert(name(type));
  }
  for (int i = 0; i < kReduceOpCount; ++i)
    EXPECT_EQ(reduce_op_named(name(static_cast<ReduceOp>(i))), static_cast<ReduceOp>(i));
  for (int i = 0; i < kOperationCount; ++i)
    EXPECT_EQ(operation_named(name(static_cast<Operation>(i))), static_cast<Operation>(i));
  EXPECT_EQ(names.size(), size_t{kDataTypeCount});
}

TEST(Types, WhatIsNoNameIsNoValue) {
  for (const char* text : {"", "float", "FLOAT32", "float32 ", "?"}) EXPECT_EQ(data_type_named(text), std::nullopt);
  EXPECT_EQ(reduce_op_named("avg"), std::nullopt);
  EXPECT_EQ(operation_named("allreduce"), std::nullopt);
}

TEST(Types, LengthsAreThoseOfTheTypesNamed) {
  EXPECT_EQ(type_bytes(DataType::int8), 1u);
  EXPECT_EQ(type_bytes(DataType::float16), 2u);
  EXPECT_EQ(type_bytes(DataType::bfloat16), 2u);
  EXPECT_EQ(type_bytes(DataType::float32), sizeof(float));
  EXPECT_EQ(type_bytes(DataType::float64), sizeof(double));
  EXPECT_EQ(type_bytes(DataType::uint64), 8u);
}

TEST(Types, BitwiseOperatorsAreForIntegersAlone) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_TRUE(is_defined(ReduceOp::average, type));
    EXPECT_EQ(is_defined(ReduceOp::bit_and, type), std::string(name(type)).find("float") == std::string::npos);
  }
}

TEST(Types, ASignatureReadsAsTheCall) {
  const Signature call{Operation::all_reduce, DataType::float32, ReduceOp::sum, -1, 1024};
  EXPECT_EQ(to_string(call), "all_reduce(count 1024, float32, sum)");
  Signature other = call;
  other.count = 1;
  EXPECT_NE(call, other);
}

}  // namespace
}  // namespace tutti::internal
