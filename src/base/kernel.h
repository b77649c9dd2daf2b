// The shape of a reduction kernel. The kernels themselves live in algo/kernels; whoever moves memory is handed one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::internal {

// dst[i] = sources[0][i] op sources[1][i] op ... op sources[source_count-1][i], in this order, for i < element_count.
// source_count >= 1. Pointers need no alignment. dst may be equal to one of the sources, not overlap one otherwise.
// divisor != 0 asks for the result to be divided by it (average) in the same pass, before rounding to the type.
using ReduceKernel = void (*)(void* dst, const void* const* sources, int source_count, size_t element_count,
                              uint32_t divisor);

// A reduction as a transport needs it: how to combine, and how long an element is.
struct Reduction {
  ReduceKernel kernel = nullptr;
  uint32_t element_bytes = 0;
  uint32_t divisor = 0;
};

// The most operands that one call of a kernel takes, and so one reduce step.
inline constexpr int kMaxOperands = 64;

}  // namespace tutti::internal
