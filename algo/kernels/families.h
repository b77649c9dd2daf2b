// Within the room: who has the kernel of which types. Each takes only pairs for which is_defined holds.
#pragma once

#include "src/base/kernel.h"
#include "src/base/types.h"

namespace tutti::internal {

ReduceKernel integer_kernel(DataType type, ReduceOp op);        // sum, average, product
ReduceKernel integer_order_kernel(DataType type, ReduceOp op);  // min, max
ReduceKernel bitwise_kernel(DataType type, ReduceOp op);        // bit_and, bit_or, bit_xor
ReduceKernel float_kernel(DataType type, ReduceOp op);          // float32, float64
ReduceKernel small_float_kernel(DataType type, ReduceOp op);    // float16, bfloat16

}  // namespace tutti::internal
