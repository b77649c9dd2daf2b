// Leads a type and an operator to the family that has the kernel.
#include "algo/kernels/kernels.h"

#include <hwy/highway.h>

#include "algo/kernels/families.h"

namespace tutti::internal {
namespace {

bool exists(DataType type, ReduceOp op) {
  const auto is_index = [](int value, int count) { return value >= 0 && value < count; };
  return is_index(static_cast<int>(type), kDataTypeCount) && is_index(static_cast<int>(op), kReduceOpCount) &&
         is_defined(op, type);
}

}  // namespace

ReduceKernel kernel_for(DataType type, ReduceOp op) {
  if (!exists(type, op)) return nullptr;
  if (type == DataType::float16 || type == DataType::bfloat16) return small_float_kernel(type, op);
  if (is_float(type)) return float_kernel(type, op);
  if (is_bitwise(op)) return bitwise_kernel(type, op);
  if (op == ReduceOp::min || op == ReduceOp::max) return integer_order_kernel(type, op);
  return integer_kernel(type, op);
}

const char* kernel_target_name() {
  // Highway's lowest bit is its best target; the one that every processor of this build has is always there.
  const int64_t targets = (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
  return hwy::TargetName(targets & -targets);
}

}  // namespace tutti::internal
