// The reductions: one kernel for each element type and operator, in the shape of src/base/kernel.h, for the best
// instruction set that this processor has. Kernels are stateless; any thread may run them.
//
// What holds for all, at every count, alignment and instruction set, bit for bit:
//   - operands are combined from the first to the last, each element once, in one pass over memory
//   - integer sums and products wrap; min and max compare as the type does; averages round toward zero
//   - float min and max are NaN if an operand is, and -0 is less than +0
//   - float16 and bfloat16 are summed and multiplied in float32, and rounded once, to nearest even, when stored
//   - a NaN result is always the same quiet NaN: sign 0, the fraction's top bit set, the rest 0
#pragma once

#include "src/base/kernel.h"
#include "src/base/types.h"

namespace tutti::internal {

// The kernel, or null where the operator is not defined for the type, or one of the two is no enumerator. Only the
// kernels of sum and average look at `divisor`. The answer does not change during a process: ask once and keep it.
ReduceKernel kernel_for(DataType type, ReduceOp op);

// The instruction set that kernel_for picks: "AVX3" (AVX-512), "AVX2", "SSE4", "SCALAR" and so on.
const char* kernel_target_name();

}  // namespace tutti::internal
