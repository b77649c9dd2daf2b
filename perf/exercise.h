// One operation at one size on this rank: where its input and output lie, what goes in, and whether what came out is
// right. Results are compared bit by bit with what pattern.h computes without the library.
#pragma once

#include <optional>

#include "buffers.h"
#include "options.h"
#include "pattern.h"

namespace tutti::perf {

// Who measures, and how large the world is.
struct Place {
  int rank;
  int size;
};

// Elements per rank for a size of this many bytes: whole elements, one at least.
size_t count_for(const Options& options, int size, uint64_t bytes);
// And the bytes that this count stands for.
uint64_t bytes_for(const Options& options, int size, size_t count);

// The memory of this rank for the largest count of a sweep.
class Buffers {
 public:
  Buffers(tutti_group* group, const Options& options, Place place, size_t max_count);
  static double needed_bytes(const Options& options, Place place, size_t max_count);

  std::byte* input() const { return shared_ ? output() : input_->data(); }
  std::byte* output() const { return output_->data(); }

 private:
  bool shared_;
  std::optional<Region> input_;
  std::optional<Region> output_;
};

class Exercise {
 public:
  Exercise(const Options& options, Place place, size_t count, const Buffers& buffers);

  const Call& call() const { return call_; }
  // Writes the input of call `number`, and rubbish where the result will be.
  void fill(uint64_t number) const;
  // Elements of the result of call `number` that are wrong; the first is described in *first if that is empty.
  uint64_t count_wrong(uint64_t number, std::string* first) const;
  // Turns over one bit of the result, if this rank has one.
  void flip_bit(uint64_t number) const;

 private:
  // Whose input an output block repeats, or no rank for a combination of all; and from which of its elements.
  struct Source {
    std::optional<int> rank;
    size_t first;
  };
  Source source_of(size_t block) const;
  void expect(const Source& source, uint64_t number, size_t offset, std::span<std::byte> out) const;
  uint64_t count_wrong_in(size_t block, uint64_t number, std::string* first) const;

  Place place_;
  Call call_;
  Pattern pattern_;
  size_t input_blocks_;
  size_t output_blocks_;
};

}  // namespace tutti::perf
