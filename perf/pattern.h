// What the ranks put into a call, and what must come out: values that differ by rank, element and call, so that stale
// or misplaced data shows, and that make every order of combining give the same bits, so that any wrong bit shows.
//
//   operations that only move data   random bits, NaNs among them
//   integers                         random bits; sums and products wrap
//   float sum, average, min, max     integers so small that every partial sum is exact in the type itself
//   float product                    signed powers of two whose every partial product is in range
#pragma once

#include <tutti/tutti.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::perf {

class Pattern {
 public:
  // Values to be combined by `op` over `ranks` ranks, or only moved when `reduces` is false.
  Pattern(tutti_type type, tutti_op op, int ranks, bool reduces);

  // Elements first, first+1, ... of the input of `rank` in call number `call`, as many as fill `out`.
  void input(int rank, uint64_t call, size_t first, std::span<std::byte> out) const;
  // The same elements of all ranks, combined.
  void combined(uint64_t call, size_t first, std::span<std::byte> out) const;

  size_t element_bytes() const { return element_bytes_; }

 private:
  template <class Wide>
  void write(int first_rank, int rank_count, uint64_t call, size_t first, std::span<std::byte> out) const;
  template <class Wide>
  void values(int rank, uint64_t call, size_t first, std::span<Wide> out) const;
  void dispatch(int first_rank, int rank_count, uint64_t call, size_t first, std::span<std::byte> out) const;

  tutti_type type_;
  tutti_op op_;
  int ranks_;
  size_t element_bytes_;
  bool is_real_;    // combined as floating point values, not as bits
  bool is_signed_;  // integers that are compared and divided with their sign
  int64_t limit_;   // a rank's value lies in -limit_ ... limit_ (reals)
  int spread_;      // and only the first so many ranks differ from the neutral value (reals)
};

}  // namespace tutti::perf
