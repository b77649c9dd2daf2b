// The list forms: a buffer that is `size` separate pieces instead of one range.
#pragma once

#include <cstdint>

#include "algo/schedule.h"

namespace tutti::internal {

// The same operation where `input` (or `output`) is separate pieces of so many bytes each, addressed as one range
// [0, size * piece); 0: that buffer is contiguous. No slice of the result crosses a piece's end: copies are cut, and
// what is sent, received or combined across an end goes through scratch. Messages stay exactly as they were, so that
// the other ranks need not know.
Schedule split_pieces(const Schedule& schedule, uint64_t input_piece_bytes, uint64_t output_piece_bytes);

}  // namespace tutti::internal
