#include "exercise.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace tutti::perf {
namespace {

// Compared at a time, in elements.
constexpr size_t kCompared = 4096;

bool is_broadcast(const Options& options) { return options.operation->kind == Kind::broadcast; }

// Blocks of count elements that this rank's input and output have; 0 where the operation ignores the buffer here.
size_t input_blocks(const Options& options, Place place) {
  const Operation& operation = *options.operation;
  if (operation.kind == Kind::barrier) return 0;
  const bool only_root = operation.kind == Kind::broadcast || operation.kind == Kind::scatter;
  if (only_root && place.rank != options.root) return 0;
  return operation.wide_input ? static_cast<size_t>(place.size) : 1;
}

size_t output_blocks(const Options& options, Place place) {
  const Operation& operation = *options.operation;
  if (operation.kind == Kind::barrier) return 0;
  const bool only_root = operation.kind == Kind::reduce || operation.kind == Kind::gather;
  if (only_root && place.rank != options.root) return 0;
  return operation.wide_output ? static_cast<size_t>(place.size) : 1;
}

// A broadcast has one buffer whether asked or not.
bool is_shared(const Options& options) { return options.in_place || is_broadcast(options); }

}  // namespace

size_t count_for(const Options& options, int size, uint64_t bytes) {
  if (options.operation->kind == Kind::barrier) return 0;
  return std::max<size_t>(1, bytes / bytes_for(options, size, 1));
}

uint64_t bytes_for(const Options& options, int size, size_t count) {
  const bool wide = options.operation->wide_input || options.operation->wide_output;
  return uint64_t{count} * tutti_type_bytes(options.type) * (wide ? static_cast<uint64_t>(size) : 1);
}

double Buffers::needed_bytes(const Options& options, Place place, size_t max_count) {
  const auto input = static_cast<double>(input_blocks(options, place));
  const auto output = static_cast<double>(output_blocks(options, place));
  const double block = static_cast<double>(max_count) * static_cast<double>(tutti_type_bytes(options.type));
  return (is_shared(options) ? std::max(input, output) : input + output) * block;
}

Buffers::Buffers(tutti_group* group, const Options& options, Place place, size_t max_count)
    : shared_(is_shared(options)) {
  const size_t block = max_count * tutti_type_bytes(options.type);
  const size_t input = input_blocks(options, place);
  const size_t output = output_blocks(options, place);
  if (!shared_) input_.emplace(group, options.memory, input * block);
  output_.emplace(group, options.memory, (shared_ ? std::max(input, output) : output) * block);
}

Exercise::Exercise(const Options& options, Place place, size_t count, const Buffers& buffers)
    : place_(place),
      call_{options.operation, options.type, options.op, options.root, count, buffers.input(), buffers.output()},
      pattern_(options.type, options.op, place.size, options.operation->reduces),
      input_blocks_(input_blocks(options, place)),
      output_blocks_(output_blocks(options, place)) {
  if (!options.in_place || input_blocks_ == output_blocks_ || input_blocks_ * output_blocks_ == 0) return;
  // In place, the shorter buffer is this rank's block of the longer.
  const size_t own = static_cast<size_t>(place.rank) * count * pattern_.element_bytes();
  std::byte* const shorter = buffers.output() + own;
  (input_blocks_ < output_blocks_ ? call_.input : call_.output) = shorter;
}

Exercise::Source Exercise::source_of(size_t block) const {
  const size_t own = static_cast<size_t>(place_.rank) * call_.count;
  const int writer = static_cast<int>(block);
  switch (call_.operation->kind) {
    case Kind::broadcast: return {call_.root, 0};
    case Kind::scatter: return {call_.root, own};
    case Kind::gather:
    case Kind::all_gather: return {writer, 0};
    case Kind::all_to_all: return {writer, own};
    case Kind::send_recv: return {(place_.rank + place_.size - 1) % place_.size, 0};
    case Kind::reduce_scatter: return {std::nullopt, own};
    case Kind::reduce:
    case Kind::all_reduce:
    case Kind::barrier: break;
  }
  return {std::nullopt, 0};
}

void Exercise::expect(const Source& source, uint64_t number, size_t offset, std::span<std::byte> out) const {
  if (source.rank) {
    pattern_.input(*source.rank, number, source.first + offset, out);
  } else {
    pattern_.combined(number, source.first + offset, out);
  }
}

void Exercise::fill(uint64_t number) const {
  const size_t block = call_.count * pattern_.element_bytes();
  if (output_blocks_ > 0) std::memset(call_.output, 0x5a, output_blocks_ * block);
  if (input_blocks_ == 0) return;
  pattern_.input(place_.rank, number, 0, {static_cast<std::byte*>(call_.input), input_blocks_ * block});
}

void Exercise::flip_bit(uint64_t number) const {
  const size_t bytes = output_blocks_ * call_.count * pattern_.element_bytes();
  if (bytes == 0) return;
  const uint64_t bit = (number * 0x9e3779b97f4a7c15U >> 8) % (bytes * 8);
  static_cast<std::byte*>(call_.output)[bit / 8] ^= std::byte{1} << (bit % 8);
}

uint64_t Exercise::count_wrong(uint64_t number, std::string* first) const {
  uint64_t wrong = 0;
  for (size_t block = 0; block < output_blocks_; ++block) wrong += count_wrong_in(block, number, first);
  return wrong;
}

uint64_t Exercise::count_wrong_in(size_t block, uint64_t number, std::string* first) const {
  const size_t element = pattern_.element_bytes();
  const Source source = source_of(block);
  std::array<std::byte, kCompared * sizeof(double)> expected;
  uint64_t wrong = 0;
  for (size_t offset = 0; offset < call_.count; offset += kCompared) {
    const std::span<std::byte> part(expected.data(), std::min(kCompared, call_.count - offset) * element);
    const auto* found = static_cast<const std::byte*>(call_.output) + (block * call_.count + offset) * element;
    expect(source, number, offset, part);
    if (std::memcmp(found, part.data(), part.size()) == 0) continue;
    for (size_t i = 0; i < part.size(); i += element) {
      if (std::memcmp(found + i, part.data() + i, element) == 0) continue;
      ++wrong;
      if (!first->empty()) continue;
      uint64_t found_bits = 0;
      uint64_t expected_bits = 0;
      std::memcpy(&found_bits, found + i, element);
      std::memcpy(&expected_bits, part.data() + i, element);
      std::array<char, 160> text{};
      std::snprintf(text.data(), text.size(), "call %llu, output element %zu: bits 0x%llx, expected 0x%llx",
                    static_cast<unsigned long long>(number), block * call_.count + offset + i / element,
                    static_cast<unsigned long long>(found_bits), static_cast<unsigned long long>(expected_bits));
      *first = text.data();
    }
  }
  return wrong;
}

}  // namespace tutti::perf
