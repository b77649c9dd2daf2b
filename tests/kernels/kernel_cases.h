// What the tests of kernels share: all pairs of type and operator, every instruction set in turn, calls on byte
// vectors.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "algo/kernels/kernels.h"
#include "tests/kernels/reference.h"

namespace tutti_test {

using tutti::internal::is_defined;
using tutti::internal::kDataTypeCount;
using tutti::internal::kernel_for;
using tutti::internal::kernel_target_name;
using tutti::internal::kMaxOperands;
using tutti::internal::kReduceOpCount;
using tutti::internal::ReduceKernel;
using tutti::internal::type_bytes;

inline constexpr std::array kIntegerTypes{DataType::int8,  DataType::uint8,  DataType::int16, DataType::uint16,
                                          DataType::int32, DataType::uint32, DataType::int64, DataType::uint64};
inline constexpr std::array kFloatTypes{DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64};

struct Kind {
  DataType type;
  ReduceOp op;
};

inline std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (int t = 0; t < kDataTypeCount; ++t)
    for (int o = 0; o < kReduceOpCount; ++o)
      if (is_defined(static_cast<ReduceOp>(o), static_cast<DataType>(t)))
        kinds.push_back({static_cast<DataType>(t), static_cast<ReduceOp>(o)});
  return kinds;
}

inline std::string to_string(Kind kind) {
  return std::string(tutti::internal::name(kind.type)) + " " + tutti::internal::name(kind.op);
}

// Calls f with each instruction set of this build that this processor has, chosen as if it were the best.
template <class F>
void on_each_target(F f) {
  std::vector<std::string> seen;
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    const std::string name = kernel_target_name();
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;  // the library is built without this one
    seen.push_back(name);
    SCOPED_TRACE("instruction set " + name);
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

inline Bytes run_kernel(Kind kind, const std::vector<Bytes>& operands, uint32_t divisor = 0) {
  Bytes result(operands[0].size(), 0xA5);
  std::vector<const void*> sources;
  for (const Bytes& operand : operands) sources.push_back(operand.data());
  kernel_for(kind.type, kind.op)(result.data(), sources.data(), static_cast<int>(sources.size()),
                                 result.size() / type_bytes(kind.type), divisor);
  return result;
}

// "element 5 is 3fc0, not 3f80" for the first that differs, or "".
inline std::string difference(Kind kind, const uint8_t* found, const Bytes& wanted, size_t bytes) {
  if (bytes == 0 || std::memcmp(found, wanted.data(), bytes) == 0) return "";
  const size_t width = type_bytes(kind.type);
  const auto hex = [&](const uint8_t* at) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, width);
    char text[17];
    std::snprintf(text, sizeof text, "%0*llx", static_cast<int>(2 * width), static_cast<unsigned long long>(bits));
    return std::string(text);
  };
  size_t at = 0;
  while (std::memcmp(found + at, wanted.data() + at, width) == 0) at += width;
  return "element " + std::to_string(at / width) + " is " + hex(found + at) + ", not " + hex(wanted.data() + at);
}
inline std::string difference(Kind kind, const Bytes& found, const Bytes& wanted) {
  return difference(kind, found.data(), wanted, wanted.size());
}

}  // namespace tutti_test
